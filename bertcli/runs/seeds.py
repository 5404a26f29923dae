"""One fine-tuning config, several seeds -> a run for each, their mean and deviation, and the best model."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bertcli.checkpoints.run_folder import RunFolder, check_resumable
from bertcli.config.finetune import FinetuneConfig
from bertcli.distributed import ranks
from bertcli.evaluation.best import metric_values, rank
from bertcli.evaluation.evaluate import Scores
from bertcli.files import disk_errors
from bertcli.hf.locate import resolve_model
from bertcli.owned.folders import write_folder
from bertcli.owned.mark import write_own
from bertcli.owned.sealed import listed_files
from bertcli.runs.finetuning import Finetuned, finetune
from bertcli.runs.identity import finetuning_inputs
from bertcli.runs.preconditions import check_finetuning
from bertcli.terminal import say


def finetune_seeds(config: FinetuneConfig, resume: bool, overwrite: bool) -> Finetuned:
    """Run each of `config.seeds` in `output_dir/seed-N`; `output_dir/model` is that of the best run.

    `output_dir/seeds.json` has each run's metrics, their mean and their standard deviation (of the sample,
    n - 1; null for one run). A resume continues where the runs stopped. Raises as `finetune`.
    """
    source = ranks.first_then_all(lambda: resolve_model(config.model))
    config = config.model_copy(update={"model": str(source)})
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
        config_of_seed = config.model_copy(update={"seeds": [seed], "output_dir": str(own.root)})

        def accept(own_part: Path = own.root) -> None:
            folder.accept(config, own_part)

        runs[seed] = finetune(
            config_of_seed, resume and ranks.from_first(own.is_taken), overwrite, accepted=accept
        )

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
        say(f"{scores[best].title(name):<21} {value['mean']:.4f}{deviation}")
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
