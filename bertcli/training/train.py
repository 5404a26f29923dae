"""The training of a config with one seed or several, the lines at its end, and its report."""

import json
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import BaseModel

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config, check_continues, load_config
from bertcli.config.run import with_values
from bertcli.config.schema import PretrainConfig
from bertcli.folders.locate import resolve_model
from bertcli.folders.mark import write_own
from bertcli.folders.sealed import listed_files, write_folder
from bertcli.inference.evaluate_task import scores_json, scores_table
from bertcli.reports.build import write_report_if_asked
from bertcli.system.errors import UserError
from bertcli.system.files import disk_errors
from bertcli.system.terminal import say
from bertcli.tasks.registry import import_task
from bertcli.training import ranks
from bertcli.training.best import metric_values, rank
from bertcli.training.commands import mask_command, predict_command
from bertcli.training.finetuning import Finetuned, finetune
from bertcli.training.identity import finetuning_inputs
from bertcli.training.pretraining import pretrain
from bertcli.training.resolve import check_finetuning
from bertcli.training.run_folder import RunFolder, check_resumable
from bertcli.training.scores import Scores


def finetune_seeds(config: FinetuneConfig, resume: bool, overwrite: bool) -> Finetuned:
    """Run each of `config.seeds` in `output_dir/seed-N`; `output_dir/model` is the model of the best run.

    `output_dir/seeds.json` has each run's metrics, their mean and their standard deviation (of the sample,
    n - 1; null for one run). A resume continues where the runs stopped. Raises as `finetune`.
    """
    source = ranks.first_then_all(lambda: resolve_model(config.model))
    config = with_values(config, {"model": str(source)})
    assert config.seeds
    ranks.on_first(lambda: check_finetuning(config))
    folder = RunFolder(Path(config.output_dir), FinetuneConfig)
    with ranks.first_holds(folder.claim(resume, overwrite, lambda: finetuning_inputs(config))):
        ranks.on_first(lambda: _check_free(config, folder, overwrite))
        return _finetune_each(config, config.seeds, folder, resume=resume, overwrite=overwrite)


def _check_free(config: FinetuneConfig, folder: RunFolder[FinetuneConfig], overwrite: bool) -> None:
    """Raise `UserError` before the first seed starts if the folder of a later seed is not free."""
    for seed in config.seeds or []:
        RunFolder(folder.seed(seed), FinetuneConfig).check_free(overwrite)


def _finetune_each(
    config: FinetuneConfig,
    seeds: list[int],
    folder: RunFolder[FinetuneConfig],
    resume: bool,
    overwrite: bool,
) -> Finetuned:
    if resume and (saved := ranks.on_first(folder.saved_config)):
        check_resumable(saved, config, say)
    runs = {}
    for number, seed in enumerate(seeds, start=1):
        say(f"seed {seed} ({number} of {len(seeds)})")
        own = RunFolder(folder.seed(seed), FinetuneConfig)
        config_of_seed = with_values(config, {"seeds": [seed], "output_dir": str(own.root)})
        accept = partial(folder.accept, config, own.root)
        goes_on = resume and ranks.from_first(own.is_taken)
        runs[seed] = finetune(config_of_seed, goes_on, overwrite, accepted=accept)

    scores = {seed: run.scores for seed, run in runs.items() if run.scores}
    if not scores:
        say("no dev data to compare by: the model of the first seed is kept")
        return _keep(folder, runs[seeds[0]])
    metric = runs[seeds[0]].metric
    best = max(scores, key=lambda seed: rank(metric, metric_values(scores[seed])))
    summary = {"metric": metric, **scores[best].label_of_f1, "best": best, **_summary(scores)}
    ranks.on_first(lambda: write_own(folder.seeds, json.dumps(summary, indent=1) + "\n"))
    for name, value in summary["metrics"].items():
        deviation = "" if value["std"] is None else f" ± {value['std']:.4f}"
        say(f"{scores[best].title(name):<27} {value['mean']:.4f}{deviation}")
    for seed, run in runs.items():
        if run.verdict is not None and not run.verdict.better:
            say(f"seed {seed}: {run.verdict.line}")
    say(f"best by {scores[best].title(metric)}: seed {best}")
    return _keep(folder, runs[best])


def _summary(scores: dict[int, Scores]) -> dict[str, Any]:
    runs = {seed: metric_values(each) for seed, each in scores.items()}
    columns = {name: [run[name] for run in runs.values()] for name in next(iter(runs.values()))}
    metrics = {
        name: {
            "mean": float(np.mean(values)),
            "std": float(np.std(values, ddof=1)) if len(values) > 1 else None,
        }
        for name, values in columns.items()
    }
    return {"metrics": metrics, "runs": runs}


def _keep(folder: RunFolder[FinetuneConfig], run: Finetuned) -> Finetuned:
    def copy(path: Path) -> None:
        for name in listed_files(run.model):
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(run.model / name, path / name)

    with disk_errors(f"{folder.model}: the model could not be written"):
        ranks.on_first(lambda: write_folder(folder.model, copy))
    return replace(run, model=folder.model)


Given = Path | Mapping[str, Any]
"""A config file, the folder of a run, or the keys of a config."""
Schema = TypeVar("Schema", bound=BaseModel)


_training = threading.Lock()
"""The lock of the run in this process: dropout is drawn from torch's generator, which all threads share."""


@contextmanager
def alone() -> Iterator[None]:
    """A context for one run at a time. Raises `UserError` while another thread of this process trains."""
    if not _training.acquire(blocking=False):
        raise UserError(
            "another run is training in this process, and both would draw from one random generator, so "
            "that neither could be repeated; wait for its end, or start this run in a process of its own"
        )
    try:
        yield
    finally:
        _training.release()


@alone()
def run_pretraining(given: Given, overrides: Sequence[str], resume: bool, overwrite: bool) -> dict[str, Any]:
    """Train on raw text; call it inside `ranks.joined`. The result has the model's folder.

    `overrides`: `section.key=value`. Raises `UserError` as `load_config` and `training.pretraining.pretrain`.
    """
    resume, overwrite = ranks.after_restart(resume, overwrite)
    config = ranks.on_first(lambda: _checked(PretrainConfig, given, overrides, resume=resume))
    model, store = pretrain(config, resume, overwrite)
    if ranks.is_first():
        write_report_if_asked(config)
    say(f"the model is in {model}; try: {mask_command(model, store)}")
    return {"model": str(model)}


@alone()
def run_finetuning(given: Given, overrides: Sequence[str], resume: bool, overwrite: bool) -> dict[str, Any]:
    """Train on labeled data, as `run_pretraining`; the result also has the dev scores and the verdict."""
    resume, overwrite = ranks.after_restart(resume, overwrite)
    config = ranks.on_first(lambda: _checked(FinetuneConfig, given, overrides, resume=resume))
    start = finetune_seeds if config.seeds else finetune
    done = start(config, resume, overwrite)
    if done.scores is not None:
        say(scores_table(done.scores))
    if done.verdict is not None:
        say(done.verdict.line)
    if ranks.is_first():
        write_report_if_asked(config)
    has_head = import_task(config.task.type).head is not None
    command = predict_command(done.model, done.examples, has_head)
    say(f"the model is in {done.model}; try: {command}")
    scores = scores_json(done.scores) if done.scores else {}
    verdict = {"verdict": done.verdict.as_json()} if done.verdict else {}
    return {"model": str(done.model), **scores, **verdict}


def _checked(schema: type[Schema], given: Given, overrides: Sequence[str], resume: bool) -> Schema:
    if not isinstance(given, Path):
        return check_config(schema, dict(given), "the config")
    check_continues(given, resume, "pretrain" if schema is PretrainConfig else "finetune")
    return load_config(schema, given, list(overrides))
