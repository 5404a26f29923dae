"""Labels turned at random: how many of them are among the first rows of `--suspect-labels`.

    python scripts/check/suspect_labels.py MODEL TABLE --out FOLDER [--rows 4000] [--cleanlab PYTHON]

MODEL is any BERT folder; "minilm" as in scripts/bench/finetune.py. TABLE is a TSV file of SST-2's form,
`sentence` and `label` (0 or 1). 5 % of the labels of its first rows are turned, five folds are trained from
MODEL, and the list is written from their out-of-fold answers. A run in FOLDER whose folds have ended is read
again. With --cleanlab, the Python of an environment that has cleanlab, its lists from the same probabilities
stand beside ours. Exit code 1 if less than 60 % of the first rows (as many as are turned) are turned ones.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[2]))
from scripts.bench.finetune import find_minilm

LEAST = 0.60
CLEANLAB = """
import json, sys
import numpy as np
from cleanlab.filter import find_label_issues
given = json.load(open(sys.argv[1]))
labels, table = np.array(given["labels"]), np.array(given["probabilities"])
ranks = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")
lists = {each: find_label_issues(labels, table, return_indices_ranked_by=each).tolist() for each in ranks}
print(json.dumps(lists))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("table", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--cleanlab", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    turned = write_turned(options.table, options.out / "turned.tsv", options.rows, share=options.share)
    run, began = options.out / "run", time.perf_counter()
    if not (run / "out-of-fold.jsonl").is_file():
        train(options, run)
        print(f"{options.folds} folds and the final model: {time.perf_counter() - began:.0f} s")
    evaluate(run, options.out / "suspects.jsonl")
    suspects = read(options.out / "suspects.jsonl")
    cases = read(run / "out-of-fold.jsonl")
    right = [case["prediction"]["label"] == case["right"] for case in cases]
    print(f"out-of-fold accuracy {sum(right) / len(right):.4f} on {len(cases):,} rows, {len(turned)} turned")
    places = {case["where"]: place for place, case in enumerate(cases)}
    lists = {"bertcli": [places[each["where"]] for each in suspects]}
    if options.cleanlab:
        lists |= {f"cleanlab, {name}": each for name, each in cleanlab(options.cleanlab, cases).items()}
    shares = {name: show(name, each, turned) for name, each in lists.items()}
    sys.exit(0 if shares["bertcli"] >= LEAST else 1)


def write_turned(table: Path, target: Path, rows: int, share: float) -> set[int]:
    """Write the first rows, with that share of the labels turned; return the places of these rows."""
    header, *lines = table.read_text(encoding="utf-8").splitlines()[: rows + 1]
    turned = set(random.Random(0).sample(range(len(lines)), round(share * len(lines))))
    for place in turned:
        text, label = lines[place].split("\t")
        lines[place] = f"{text}\t{1 - int(label)}"
    target.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return turned


def train(options: argparse.Namespace, run: Path) -> None:
    config = {
        "output_dir": str(run),
        "model": str(find_minilm() if options.model == "minilm" else options.model),
        "folds": options.folds,
        "task": {
            "type": "classification",
            "train": str(options.out / "turned.tsv"),
            "text": "sentence",
            "label": "label",
            "quoting": "none",
        },
        "training": {"epochs": options.epochs},
    }
    (options.out / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    command = [sys.executable, "-m", "bertcli", "finetune", str(options.out / "config.yaml")]
    subprocess.run([*command, "--resume"], check=True)


def evaluate(run: Path, path: Path) -> None:
    command = [sys.executable, "-m", "bertcli", "evaluate", str(run), "--suspect-labels", str(path)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def cleanlab(python: Path, cases: list[dict[str, Any]]) -> dict[str, list[int]]:
    """The places of the rows in cleanlab's lists, by the name of its order."""
    names = sorted(cases[0]["prediction"]["probabilities"])
    table = [[case["prediction"]["probabilities"][name] for name in names] for case in cases]
    labels = [names.index(case["right"]) for case in cases]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"labels": labels, "probabilities": table}, file)
        file.flush()
        done = subprocess.run([python, "-c", CLEANLAB, file.name], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def show(name: str, listed: list[int], turned: set[int]) -> float:
    """Print, and return, the share of turned labels among the first rows, as many as are turned."""
    firsts = {most: sum(place in turned for place in listed[:most]) for most in (50, 100, len(turned))}
    found = len(turned & set(listed))
    shown = ", ".join(f"{hits} of the first {most}" for most, hits in firsts.items())
    print(f"{name:<38} {len(listed):>5} rows listed, {found} of them turned: {shown}")
    return firsts[len(turned)] / len(turned)


if __name__ == "__main__":
    main()
