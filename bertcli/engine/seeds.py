"""One fine-tuning config, several seeds -> a run for each, their mean and deviation, and the best model."""

from __future__ import annotations

import json
import shutil
import statistics
from pathlib import Path
from typing import Any

from bertcli.config.finetune import FinetuneConfig
from bertcli.engine.best import metric_value
from bertcli.engine.finetuning import Finetuned, finetune
from bertcli.engine.progress import say
from bertcli.engine.run_folder import RunFolder
from bertcli.files import disk_errors, write_folder, write_text

SUMMARY = "seeds.json"


def finetune_seeds(config: FinetuneConfig, resume: bool, overwrite: bool) -> Finetuned:
    """Run each of `config.seeds` in `output_dir/seed-N`; `output_dir/model` is that of the best run.

    `output_dir/seeds.json` holds each run's metrics, their mean and their standard deviation (of the
    sample, n - 1). A resume goes on where the runs stopped. Raises what `finetune` raises.
    """
    assert config.seeds
    root = Path(config.output_dir)
    runs = {}
    for number, seed in enumerate(config.seeds, start=1):
        say(f"seed {seed} ({number} of {len(config.seeds)})")
        own = config.model_copy(update={"seeds": [seed], "output_dir": str(root / f"seed-{seed}")})
        begun = RunFolder(root / f"seed-{seed}", FinetuneConfig).is_taken
        runs[seed] = finetune(own, resume=resume and begun, overwrite=overwrite)
    first = runs[config.seeds[0]]
    if first.scores is None:
        say("no dev data to judge by: the model of the first seed is kept")
        return _keep(root, first)
    sign = -1 if first.metric.endswith(("_error", "loss")) else 1
    values = {seed: sign * metric_value(run.scores, run.metric) for seed, run in runs.items() if run.scores}
    best = max(values, key=lambda seed: values[seed])
    summary = _summary(runs)
    write_text(root / SUMMARY, json.dumps({"metric": first.metric, "best": best, **summary}, indent=1) + "\n")
    for name, spread in summary["metrics"].items():
        say(f"{name:<22}{spread['mean']:.4f} ± {spread['std']:.4f}")
    say(f"best by {first.metric}: seed {best}")
    return _keep(root, runs[best])


def _summary(runs: dict[int, Finetuned]) -> dict[str, Any]:
    rows = {
        seed: {name: value for name, value in run.scores.metrics.items() if isinstance(value, float)}
        for seed, run in runs.items()
        if run.scores
    }
    names = next(iter(rows.values()))
    columns = {name: [row[name] for row in rows.values()] for name in names}
    metrics = {
        name: {
            "mean": statistics.fmean(values),
            "std": statistics.stdev(values) if len(values) > 1 else 0.0,
        }
        for name, values in columns.items()
    }
    return {"metrics": metrics, "runs": rows}


def _keep(root: Path, run: Finetuned) -> Finetuned:
    model = root / "model"

    def copy(path: Path) -> None:
        shutil.copytree(run.model, path, dirs_exist_ok=True)

    with disk_errors(f"{model}: the model could not be written"):
        write_folder(model, copy)
    return Finetuned(model, run.scores, run.metric)
