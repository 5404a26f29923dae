"""Models of each family, pretrained side by side for the same minutes, then fine-tuned on three tasks.

    python scripts/bench/family_table.py TEXTS TASKS --out FOLDER [--families bert ...] [--minutes 15]

TEXTS are text files (a glob, in quotes), TASKS the folder with SST-2, STS-B (GLUE's own files) and wnut17.
Every family has 4 layers x 256 and a WordPiece vocabulary of 8,192 in lower case, trained on the text; rows,
rates and precision are the same, masks and objective are the family's. First the step of each is timed, all
families in turn and twice; that gives the number of steps that `--minutes` hold, so that work of others on
the machine changes the time of a run, but not the result. Then each family is trained by `bertcli pretrain`
and fine-tuned by `bertcli finetune` with three seeds on each task. Prints a line for each as it ends. A part
that is finished in FOLDER is not repeated.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from small_tasks import bertcli, score, task_sections, write

FAMILIES = ["bert", "roberta", "albert", "electra", "deberta-v3", "modernbert"]
SEEDS = [1, 2, 3]
TASKS = ["sst2", "stsb", "wnut17"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("texts")
    parser.add_argument("tasks", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--families", nargs="+", default=FAMILIES, choices=FAMILIES)
    parser.add_argument("--minutes", type=float, default=15.0)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    configs = {name: pretraining_config(name, options.texts, options.out) for name in options.families}
    steps = steps_in(options.minutes, configs, options.out / "steps.json")
    for family, config in configs.items():
        run = options.out / family
        if not (run / "model" / "config.json").is_file():
            resume = ["--resume"] if (run / "checkpoints").is_dir() else []
            bertcli("pretrain", config, "--set", f"training.steps={steps[family]}", *resume)
        report(family, pretrained(run), steps=steps[family])
        sections = task_sections(options.tasks, options.out)
        for task in TASKS:
            report(family, finetuned(run, task, sections[task]))


def report(family: str, figures: dict[str, Any], **more: Any) -> None:
    print(json.dumps({"family": family, **more, **figures}), flush=True)


def pretraining_config(family: str, texts: str, out: Path) -> Path:
    return write(
        out / f"{family}.yaml",
        {
            "output_dir": str(out / family),
            "corpus": {"files": [texts], "heldout_fraction": 0.05},
            "tokenizer": {"kind": "wordpiece", "vocab_size": 8192, "lowercase": True},
            "model": {"family": family, "preset": "mini", "dropout": 0.0},
            "training": {"batch_size": 32},
            "evaluation": {"every_steps": 1000, "batches": 100},
            "checkpoint": {"every_steps": 500, "keep_last": 1},
            "logging": {"every_steps": 100},
        },
    )


def steps_in(minutes: float, configs: dict[str, Path], saved: Path) -> dict[str, int]:
    """The steps of each family, by the mean of two measured times."""
    if saved.is_file() and json.loads(saved.read_text()).keys() >= configs.keys():
        return json.loads(saved.read_text())
    times: dict[str, list[float]] = {family: [] for family in configs}
    for config in configs.values():
        bertcli("prepare", config)
    for _ in range(2):
        for family, config in configs.items():
            measured = json.loads(bertcli("bench", "step", "--config", config, "--steps", 30, "--json"))
            times[family].append(measured["ms_per_step"] / 1e3)
    steps = {family: round(60 * minutes / statistics.mean(each)) for family, each in times.items()}
    for family, each in times.items():
        report(family, {"ms_per_step": 1e3 * statistics.mean(each)})
    saved.write_text(json.dumps(steps))
    return steps


def pretrained(run: Path) -> dict[str, Any]:
    """Tokens that were read, and the last held-out figures."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    train = [row for row in rows if row["split"] == "train"][-1]
    heldout = [row for row in rows if row["split"] == "heldout"][-1]
    wanted = ("mlm_loss", "mlm_accuracy", "rtd_loss", "rtd_found", "rtd_replaced")
    figures = {name: heldout[name] for name in wanted if name in heldout}
    return {"tokens": train["tokens"], "seconds": train["seconds"], **figures}


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
