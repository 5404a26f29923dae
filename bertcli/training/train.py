"""The training of a config in one run, or in one for each seed or fold; its last lines, and its report."""

import json
import shutil
import statistics
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
from bertcli.folders.run_layout import ALL_ROWS, RunLayout, read_folds
from bertcli.folders.sealed import listed_files, write_folder
from bertcli.inference.evaluate_task import out_of_fold, scores_json, scores_table
from bertcli.reports.build import write_report_if_asked
from bertcli.system.errors import UserError
from bertcli.system.files import disk_errors
from bertcli.system.terminal import say
from bertcli.tasks.registry import import_task
from bertcli.training import ranks
from bertcli.training.best import metric_values, sort_key
from bertcli.training.commands import mask_command, predict_command
from bertcli.training.finetuning import Finetuned, finetune
from bertcli.training.identity import finetuning_inputs
from bertcli.training.pretraining import pretrain
from bertcli.training.resolve import check_finetuning
from bertcli.training.run_folder import RunFolder, check_resumable
from bertcli.training.scores import Scores


@dataclass(frozen=True)
class _Whole:
    """A run that consists of runs in folders of their own, one for each seed or fold.

    Attributes:
        config: the config that was given.
        folder: the folder of the whole, which holds those of the parts.
    """

    config: FinetuneConfig
    folder: RunFolder[FinetuneConfig]
    resume: bool
    overwrite: bool

    def run(self, name: str, keys: Mapping[str, Any], **given: Any) -> Finetuned:
        """The part in the folder `name`, whose config has other `keys` than the whole.

        A part is resumed if it has begun, unless it was to take other epochs: those of the run on all rows
        follow from the folds, and it then begins again. `given`: more arguments of `finetune`.
        """
        own = RunFolder(self.folder.part(name), FinetuneConfig)
        config = with_values(self.config, {**keys, "output_dir": str(own.root)})
        is_taken, saved = ranks.on_first(lambda: (own.is_taken, own.saved_config() if self.resume else None))
        is_other = name == ALL_ROWS and saved is not None and saved.training.epochs != config.training.epochs
        return finetune(
            config,
            resume=self.resume and is_taken and not is_other,
            overwrite=self.overwrite or is_other,
            accepted=partial(self.folder.accept, self.config, own.root),
            given=self.folder.root,
            **given,
        )

    def write_summary(self, path: Path, scores: Mapping[str, Scores], summary: Mapping[str, Any]) -> None:
        """Write the scores of the parts, their mean and deviation, and say these."""
        figures = _summary({name.partition("-")[2]: each for name, each in scores.items()})
        ranks.on_first(lambda: write_own(path, json.dumps({**summary, **figures}, indent=1) + "\n"))
        first = next(iter(scores.values()))
        for name, value in figures["metrics"].items():
            deviation = "" if value["std"] is None else f" ± {value['std']:.4f}"
            say(f"{first.title(name):<27} {value['mean']:.4f}{deviation}")


def finetune_parts(config: FinetuneConfig, resume: bool, overwrite: bool) -> Finetuned:
    """Run each of `config.parts` in a folder of its own; `output_dir/model` is the model that is kept.

    Of seeds it is the model of the best run. After folds, one more run learns from all rows, and its scores
    are those of all out-of-fold answers, which `out-of-fold.jsonl` has. `seeds.json` or `folds.json` has each
    run's metrics, their mean and their standard deviation (of the sample, n - 1; null for one run). A resume
    continues where the runs stopped. Raises as `finetune`.
    """
    source = ranks.first_then_all(lambda: resolve_model(config.model))
    config = with_values(config, {"model": str(source)})
    ranks.on_first(lambda: check_finetuning(config))
    folder = RunFolder(Path(config.output_dir), FinetuneConfig)
    whole, runs = _Whole(config, folder, resume, overwrite=overwrite), dict[str, Finetuned]()
    with ranks.first_holds(folder.claim(resume, overwrite, lambda: finetuning_inputs(config))):
        ranks.on_first(lambda: _check_free(config, folder, overwrite))
        if resume and (saved := ranks.on_first(folder.saved_config)):
            check_resumable(saved, config, say)
        for number, (name, keys) in enumerate(config.parts.items(), start=1):
            say(f"{name.replace('-', ' ')} ({number} of {len(config.parts)})")
            runs[name] = whole.run(name, keys)
        kept = _best_seed(whole, runs) if config.folds is None else _on_all_rows(whole, runs)
        return _keep(folder, kept)


def _check_free(config: FinetuneConfig, folder: RunFolder[FinetuneConfig], overwrite: bool) -> None:
    """Raise `UserError` before the first part starts if the folder of a later one is not free."""
    for name in (*config.parts, *([ALL_ROWS] if config.folds else [])):
        RunFolder(folder.part(name), FinetuneConfig).check_free(overwrite)


def _best_seed(whole: _Whole, runs: Mapping[str, Finetuned]) -> Finetuned:
    scores = {name: run.scores for name, run in runs.items() if run.scores}
    first = next(iter(runs.values()))
    if not scores:
        say("no dev data to compare by: the model of the first seed is kept")
        return first
    metric = first.metric
    best = max(scores, key=lambda name: sort_key(metric, metric_values(scores[name])))
    number = int(best.partition("-")[2])
    summary = {"metric": metric, **scores[best].label_of_f1, "best": number}
    whole.write_summary(whole.folder.seeds, scores, summary)
    for name, run in runs.items():
        if run.verdict is not None and not run.verdict.better:
            say(f"{name.replace('-', ' ')}: {run.verdict.line}")
    say(f"best by {scores[best].title(metric)}: seed {number}")
    return runs[best]


def _on_all_rows(whole: _Whole, runs: Mapping[str, Finetuned]) -> Finetuned:
    """Write the answers of the folds and their scores, and make the model that learns from all rows.

    What a model takes from dev data, such as `task.null_threshold`, it takes from these answers.
    """
    folds = [(run.answers, run.places) for run in runs.values() if run.answers is not None]
    answers = out_of_fold(folds)
    epochs = statistics.median(run.best_epoch for run in runs.values())
    metric, scores = next(iter(runs.values())).metric, answers.scores
    value = metric_values(scores)[metric]
    summary = {"metric": metric, **scores.label_of_f1, "epochs": epochs, "out_of_fold": scores_json(scores)}

    def write() -> None:
        path = whole.folder.out_of_fold
        lines = (json.dumps(case, ensure_ascii=False) + "\n" for case in answers.cases())
        with disk_errors(f"{path}: could not be written"):
            write_own(path, "".join(lines))

    ranks.on_first(write)
    of_folds = {name: run.scores for name, run in runs.items() if run.scores}
    whole.write_summary(whole.folder.folds, of_folds, summary)
    say(f"{scores.title(metric)} of all {len(answers.examples):,} out-of-fold answers: {value:.4f}")
    say(
        f"the final model learns from all rows for {epochs:g} epoch{'s' * (epochs != 1)}, the median of the "
        "best of the folds"
    )
    keys = {
        "folds": None,
        "task": {"group": None},
        "training": {"epochs": epochs, "early_stopping": None},
    }
    return whole.run(ALL_ROWS, keys, out_of_fold=answers)


def _summary(scores: Mapping[str, Scores]) -> dict[str, Any]:
    runs = {name: metric_values(each) for name, each in scores.items()}
    # A fold without unanswered questions, for instance, lacks their scores.
    names = [name for name in next(iter(runs.values())) if all(name in run for run in runs.values())]
    columns = {name: [run[name] for run in runs.values()] for name in names}
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
    start = finetune_parts if config.parts else finetune
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
    folds = {}
    if config.folds is not None and config.fold is None:
        summary = ranks.on_first(lambda: read_folds(RunLayout(Path(config.output_dir))))
        folds = {"folds": {key: summary[key] for key in ("epochs", "metrics", "runs")}}
    return {"model": str(done.model), **scores, **verdict, **folds}


def _checked(schema: type[Schema], given: Given, overrides: Sequence[str], resume: bool) -> Schema:
    if not isinstance(given, Path):
        return check_config(schema, dict(given), "the config")
    check_continues(given, resume, "pretrain" if schema is PretrainConfig else "finetune")
    return load_config(schema, given, list(overrides))
