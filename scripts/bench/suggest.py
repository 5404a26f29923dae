"""What the rows of `bertcli suggest` teach, beside random ones.

    python scripts/bench/suggest.py MODEL TRAIN.tsv DEV.tsv [--text sentence] [--label label] [--seeds 3]

A pool of the training file's rows without labels (`--pool`), in which some rows are planted again with small
changes. For each seed: 100 random rows are labeled, MODEL is fine-tuned on them, and five times 100 rows more
are labeled and MODEL is fine-tuned on all of them: those that `bertcli suggest` names, and in another chain
random ones. Prints the accuracy on the dev file by number of rows, a seed a line, and the means; and how
often a row and its planted copy were suggested together. With SST-2 of GLUE and all-MiniLM-L6-v2 it takes
about an hour on two cores.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ARMS = ("suggest", "random")
Rows = list[dict[str, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("model", "train", "dev"):
        parser.add_argument(name, type=Path)
    for name, value in (("text", "sentence"), ("label", "label")):
        parser.add_argument(f"--{name}", default=value)
    for name, value in (("pool", 6000), ("planted", 300), ("rows", 100), ("rounds", 5), ("seeds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    everything = read(options.train)
    scores: dict[str, list[list[float]]] = {arm: [] for arm in ARMS}
    together = later = 0
    for seed in range(options.seeds):
        rows = random.Random(seed).sample(everything, options.pool + options.rows)
        start, pool = rows[: options.rows], planted(rows[options.rows :], options.planted, seed, options.text)
        first: float | None = None
        for arm in ARMS:
            with tempfile.TemporaryDirectory() as folder:
                chain = Chain(Path(folder), options, seed)
                found = [chain.learn(start) if first is None or arm == "suggest" else first]
                first, labeled, left = found[0], list(start), list(pool)
                for _ in range(options.rounds):
                    if arm == "suggest":
                        chosen = chain.suggested(left)
                    else:
                        chosen = [row["id"] for row in random.Random(len(labeled)).sample(left, options.rows)]
                    originals = [of.removesuffix("c") for of in chosen]
                    if arm == "suggest":
                        together += len(originals) - len(set(originals))
                        later += len(
                            set(originals) & {row["id"].removesuffix("c") for row in labeled if "id" in row}
                        )
                    labeled += [row for row in left if row["id"] in chosen]
                    left = [row for row in left if row["id"] not in chosen]
                    found.append(chain.learn(labeled))
            scores[arm].append(found)
            print(f"seed {seed} {arm:8}{''.join(f'{100 * each:8.2f}' for each in found)}", flush=True)
    print(f"rows{'':11}{''.join(f'{options.rows * (1 + i):8}' for i in range(options.rounds + 1))}")
    for arm, found in scores.items():
        means = [statistics.mean(column) for column in zip(*found, strict=True)]
        print(f"mean {arm:10}{''.join(f'{100 * each:8.2f}' for each in means)}")
    print(
        f"a row and its planted copy in one round: {together}; a copy of a row of an earlier round: {later}"
    )


class Chain:
    """A growing training file, and the model that is fine-tuned on it."""

    def __init__(self, folder: Path, options: argparse.Namespace, seed: int):
        self.folder, self.options, self.seed = folder, options, seed

    def learn(self, rows: Rows) -> float:
        """The accuracy of the model that is fine-tuned on these rows."""
        options = self.options
        write(self.folder / "train.tsv", rows, [options.text, options.label])
        config = {
            "output_dir": str(self.folder / "run"),
            "model": str(options.model),
            "seed": self.seed,
            "task": {
                "type": "classification",
                "train": str(self.folder / "train.tsv"),
                "text": options.text,
                "label": options.label,
                "max_length": 64,
            },
            "training": {"epochs": 10.0, "batch_size": 16, "learning_rate": 1e-4},
        }
        (self.folder / "config.yaml").write_text(json.dumps(config))
        bertcli("finetune", self.folder / "config.yaml", "--overwrite")
        return json.loads(bertcli("evaluate", self.folder / "run", "--data", options.dev, "--json"))[
            "accuracy"
        ]

    def suggested(self, pool: Rows) -> list[str]:
        """The ids of the rows that `bertcli suggest` chooses from the pool."""
        write(self.folder / "pool.tsv", pool, ["id", self.options.text])
        given = (self.folder / "run", self.folder / "pool.tsv", "-n", self.options.rows, "--json")
        return [json.loads(line)["id"] for line in bertcli("suggest", *given).splitlines()]


def bertcli(*arguments: Any) -> str:
    """The standard output of a command."""
    command = [sys.executable, "-m", "bertcli", *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return run.stdout


def planted(rows: Rows, number: int, seed: int, text: str) -> Rows:
    """The rows with ids; `number` of 8 words or more again, with a small change and a `c` in the id."""
    rows = [{**row, "id": str(place)} for place, row in enumerate(rows)]
    draw = random.Random(f"copies {seed}")
    copies = []
    for row in draw.sample([row for row in rows if len(row[text].split()) >= 8], number):
        words = row[text].split()
        place = draw.randrange(len(words))
        change = draw.choice(("case", "drop", "replace", "end"))
        if change == "case":
            words = [word.upper() for word in words]
        elif change == "drop":
            del words[place]
        elif change == "replace":
            words[place] = "something"
        else:
            words.append("!!!")
        copies.append({**row, text: " ".join(words), "id": row["id"] + "c"})
    rows += copies
    draw.shuffle(rows)
    return rows


def read(path: Path) -> Rows:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def write(path: Path, rows: Rows, columns: list[str]) -> None:
    lines = ["\t".join(columns), *("\t".join(row[column] for column in columns) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
