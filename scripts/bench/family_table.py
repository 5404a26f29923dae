"""Models of each family, pretrained side by side for the same minutes, then fine-tuned on two tasks.

    python scripts/bench/family_table.py TEXTS TASKS --out FOLDER [--families bert ...] [--minutes 10]
        [--plan]

TEXTS are text files (a glob, in quotes), TASKS the folder with SST-2 (GLUE's own files) and wnut17.
Every family has 4 layers x 256 and a WordPiece vocabulary of 8,192 in lower case, trained on the text; the
rest is what bertcli decides for the family. Each has as many steps as `--minutes` hold by `bertcli estimate`;
with `--plan` that is measured and nothing is trained: the machine must have nothing else to do. The same
command without `--plan` trains by the configs that are there; then work of others changes the time of a run,
but not the result. Each family is trained by `bertcli pretrain` and fine-tuned by `bertcli finetune` with
three seeds on each task. Prints a line for each as it ends. A part of FOLDER that has ended is not repeated.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from small_tasks import pretrain, score, task_sections, write_with_steps

FAMILIES = ["bert", "roberta", "albert", "electra", "deberta-v3", "modernbert"]
SEEDS = [1, 2, 3]
TASKS = ["sst2", "wnut17"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("texts")
    parser.add_argument("tasks", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--families", nargs="+", default=FAMILIES, choices=FAMILIES)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--plan", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    configs = {name: pretraining_config(name, options) for name in options.families}
    for family, config in configs.items():
        if options.plan:
            continue
        run = pretrain(config)
        report(family, pretrained(run))
        sections = task_sections(options.tasks, options.out)
        for task in TASKS:
            report(family, finetuned(run, task, sections[task]))


def report(family: str, figures: dict[str, Any], **more: Any) -> None:
    print(json.dumps({"family": family, **more, **figures}), flush=True)


def pretraining_config(family: str, options: argparse.Namespace) -> Path:
    """The config of a family; one that is there stays as it is."""
    value = {
        "output_dir": str((options.out / family).resolve()),
        "corpus": {"files": [options.texts], "heldout_fraction": 0.05},
        "tokenizer": {"kind": "wordpiece", "vocab_size": 8192, "lowercase": True},
        "model": {"family": family, "preset": "mini"},
        "evaluation": {"every_steps": 10**9, "batches": 100},
        "checkpoint": {"every_steps": 500, "keep_last": 1},
        "logging": {"every_steps": 100},
    }
    return write_with_steps(options.out / f"{family}.yaml", value, options.minutes)


def pretrained(run: Path) -> dict[str, Any]:
    """Tokens that were read, and the last held-out figures."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    train = [row for row in rows if row["split"] == "train"][-1]
    heldout = [row for row in rows if row["split"] == "heldout"][-1]
    wanted = ("mlm_loss", "mlm_accuracy", "rtd_loss", "rtd_found", "rtd_replaced")
    figures = {name: heldout[name] for name in wanted if name in heldout}
    return {"steps": train["step"], "tokens": train["tokens"], "seconds": train["seconds"], **figures}


def finetuned(run: Path, task: str, section: dict[str, Any]) -> dict[str, Any]:
    """The mean and the range over the seeds of the task's own metric on its dev data."""
    config = {
        "model": str(run / "model"),
        "task": section,
        "training": {"epochs": 3},
    }
    scores = [
        score(run.parent / f"{run.name}-{task}-{seed}", task, config | {"seed": seed}) for seed in SEEDS
    ]
    return {"task": task, "mean": statistics.mean(scores), "range": max(scores) - min(scores), "all": scores}


if __name__ == "__main__":
    main()
