"""Few rows a label: `bertcli finetune` with its defaults, with `task.few_shot`, and SetFit.

    python scripts/bench/few_shot.py MODEL DATA --python VENV/bin/python [--rows 8 16 32] [--draws 1 2 3 4 5]

MODEL is a folder of sentence-transformers; "minilm" as in scripts/bench/finetune.py. DATA is the folder with
SST-2 and CoLA (GLUE's own files) and sms-spam. VENV has setfit 1.2.0; without --python SetFit is left out.
A draw is so many random rows of each label; all ways learn the same rows and answer the same test rows:
GLUE's dev files, and 1,000 of the messages that are never drawn. SetFit runs with its defaults. Each training
is a process of its own, the ways alternate; the seconds are from the model's folder to the trained model's
folder, without the imports. With --results FILE each run is kept there, and a run that is there is not made
again.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
HELD = 1000
Rows = list[tuple[str, str]]
"""Texts and labels."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--python", help="of an environment with setfit")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--rows", nargs="+", type=int, default=[8, 16, 32])
    parser.add_argument("--draws", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--set", default="{}", help="further keys of the configs of few_shot, as JSON")
    parser.add_argument("--results", type=Path, help="a JSONL file to keep runs in")
    options = parser.parse_args()
    if options.python is None:
        options.ways = [way for way in options.ways if way != "setfit"]
    lines = options.results.read_text().splitlines() if options.results and options.results.exists() else []
    runs = {tuple(run["run"]): run for run in map(json.loads, lines)}
    for task, rows in itertools.product(options.tasks, options.rows):
        for draw, way in itertools.product(options.draws, options.ways):
            if (task, rows, draw, way) in runs:
                continue
            found = trained(way, task, rows, draw, options)
            run = {"run": [task, rows, draw, way], **found}
            runs[task, rows, draw, way] = run
            print(json.dumps(run), file=sys.stderr, flush=True)
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps(run) + "\n")
        summarize(runs, task, rows, options)


def summarize(runs: dict[Any, Any], task: str, rows: int, options: argparse.Namespace) -> None:
    """Print mean, range and mean seconds of each way."""
    for way in options.ways:
        some = [runs[task, rows, draw, way] for draw in options.draws]
        scores, seconds = [run["score"] for run in some], statistics.mean(run["seconds"] for run in some)
        named = f"{task:5} {rows:3} rows a label  {way:9}"
        spread = f"({min(scores):.1f} to {max(scores):.1f})"
        print(f"{named} {statistics.mean(scores):5.1f} {spread:16} {seconds:6.1f} s", flush=True)


def trained(way: str, task: str, rows: int, draw: int, options: argparse.Namespace) -> dict[str, float]:
    """The score on the test rows and the seconds of the training, by a process of its own."""
    train, test = TASKS[task](options.data)
    with tempfile.TemporaryDirectory() as scratch:
        given = {
            "way": way,
            "model": find_minilm() if options.model == "minilm" else options.model,
            "train": drawn(train, rows, draw),
            "texts": [text for text, _ in test],
            "seed": draw,
            "scratch": scratch,
            "set": json.loads(options.set),
        }
        path = Path(scratch) / "given.json"
        path.write_text(json.dumps(given), encoding="utf-8")
        python = options.python if way == "setfit" else sys.executable
        environment = os.environ | {"OMP_NUM_THREADS": str(options.threads), "PYTHONPATH": str(ROOT)}
        subprocess.run([python, __file__, "--one", str(path)], check=True, env=environment, stdout=2)
        found = json.loads((Path(scratch) / "found.json").read_text())
    truth = [label for _, label in test]
    return {"score": METRICS[task](truth, found["labels"]), "seconds": found["seconds"]}


def find_minilm() -> str:
    sys.path.insert(0, str(ROOT))
    from scripts.bench.finetune import find_minilm

    return find_minilm()


def drawn(rows: Rows, number: int, draw: int) -> Rows:
    """So many random rows of each label."""
    shuffled = random.Random(draw).sample(rows, len(rows))
    labels = sorted({label for _, label in rows})
    return [row for label in labels for row in [each for each in shuffled if each[1] == label][:number]]


def sst2(data: Path) -> tuple[Rows, Rows]:
    train, dev = (lines_of(data / "SST-2" / name)[1:] for name in ("train.tsv", "dev.tsv"))
    return [(a.strip(), b) for a, b in train], [(a.strip(), b) for a, b in dev]


def cola(data: Path) -> tuple[Rows, Rows]:
    train, dev = (lines_of(data / "CoLA" / name) for name in ("train.tsv", "dev.tsv"))
    return [(row[3], row[1]) for row in train], [(row[3], row[1]) for row in dev]


def sms(data: Path) -> tuple[Rows, Rows]:
    """No message is on both sides, or twice."""
    messages = dict.fromkeys(
        (row[1], row[0]) for row in lines_of(data / "sms-spam" / "SMSSpamCollection")[1:]
    )
    rows = random.Random(0).sample(list(messages), len(messages))
    return rows[HELD:], rows[:HELD]


def lines_of(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]


def accuracy(truth: list[str], given: list[str]) -> float:
    return 100 * statistics.mean(a == b for a, b in zip(truth, given, strict=True))


def matthews(truth: list[str], given: list[str]) -> float:
    counts = Counter(zip(truth, given, strict=True))
    tp, tn, fp, fn = (counts[pair] for pair in (("1", "1"), ("0", "0"), ("0", "1"), ("1", "0")))
    below = ((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)) ** 0.5
    return 100 * (tp * tn - fp * fn) / below if below else 0.0


TASKS = {"sst2": sst2, "sms": sms, "cola": cola}
METRICS = {"sst2": accuracy, "sms": accuracy, "cola": matthews}


def with_bertcli(given: dict[str, Any]) -> dict[str, Any]:
    """A run of its own config, which the training file and the defaults decide."""
    import bertcli
    import bertcli.training.train  # before the clock starts

    folder = Path(given["scratch"])
    train = folder / "train.jsonl"
    rows = [json.dumps({"text": text, "label": label}) for text, label in given["train"]]
    train.write_text("\n".join(rows) + "\n", encoding="utf-8")
    few = {"few_shot": True} if given["way"] == "few_shot" else {}
    config = {
        "output_dir": str(folder / "run"),
        "model": given["model"],
        "seed": given["seed"],
        "task": {"type": "classification", "train": str(train), "text": "text", "label": "label", **few},
        **(given["set"] if few else {}),
    }
    started = time.perf_counter()
    model = bertcli.finetune(config)["model"]
    seconds = time.perf_counter() - started
    answers = bertcli.load(model).predict(given["texts"])
    return {"seconds": seconds, "labels": [answer["label"] for answer in answers]}


def with_setfit(given: dict[str, Any]) -> dict[str, Any]:
    """SetFit's trainer with its defaults."""
    from datasets import Dataset  # pyright: ignore[reportMissingImports]
    from setfit import SetFitModel, Trainer, TrainingArguments  # pyright: ignore[reportMissingImports]

    folder = Path(given["scratch"])
    labels = sorted({label for _, label in given["train"]})
    columns = {"text": [a for a, _ in given["train"]], "label": [labels.index(b) for _, b in given["train"]]}
    started = time.perf_counter()
    model = SetFitModel.from_pretrained(given["model"])
    arguments = TrainingArguments(seed=given["seed"], output_dir=str(folder / "setfit"), report_to="none")
    Trainer(model=model, args=arguments, train_dataset=Dataset.from_dict(columns)).train()
    model.save_pretrained(str(folder / "model"))
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "labels": [labels[int(each)] for each in model.predict(given["texts"])]}


WAYS = {"finetune": with_bertcli, "few_shot": with_bertcli, "setfit": with_setfit}


def one(path: Path) -> None:
    """One training: of what is given in a file, into `found.json` beside it."""
    given = json.loads(path.read_text(encoding="utf-8"))
    path.with_name("found.json").write_text(json.dumps(WAYS[given["way"]](given)), encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one(Path(sys.argv[2]))
    else:
        main()
