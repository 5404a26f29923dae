"""Texts whose label stands in their last fifth: the accuracy of `task.windows` first, mean and max.

    python scripts/check/long_texts.py MODEL [--texts 160] [--dev 80] [--epochs 3] [--windows first mean max]

MODEL is any BERT folder; "minilm" as in scripts/bench/finetune.py. Each text has 200 to 2,000 words of the
bundled books, as many short ones as long ones; its last fifth is a reader's opinion, good or bad. A row holds
256 tokens, so `first` reads the opinion in few texts. Two layers of the model are kept, which know words and
are fast. Exit code 1 unless `first` stays within 10 points of chance and the others are at least 15 points
above it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import yaml

from bertcli.corpus.documents import split_sentences

sys.path.insert(0, str(Path(__file__).parents[2]))
from scripts.bench.finetune import find_minilm

BOOKS = Path(__file__).parents[2] / "bertcli" / "samples" / "classics" / "classics.txt.gz"
GOOD = ("wonderful", "moving", "brilliant", "delightful", "gripping", "superb", "charming", "beautiful")
BAD = ("dreadful", "tedious", "clumsy", "awful", "dull", "hopeless", "boring", "ugly")
OPINIONS = (
    "I found this story {}.",
    "On the whole the book is {} from beginning to end.",
    "My own opinion is that it is {}, and I would say so to anyone.",
    "What a {} book this was!",
    "The plot is {}.",
    "Every person in it is {}.",
)
PARAGRAPHS = 3000
"""Paragraphs of the books that are read."""
MOST_FROM_CHANCE, LEAST_ABOVE = 0.10, 0.15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--texts", type=int, default=160)
    parser.add_argument("--dev", type=int, default=80)
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--windows", nargs="+", default=["first", "mean", "max"])
    options = parser.parse_args()
    model = find_minilm() if options.model == "minilm" else options.model
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_texts(folder / "train.jsonl", options.texts, seed=1)
        write_texts(folder / "dev.jsonl", options.dev, seed=2)
        found = {mode: accuracy(folder, str(model), mode, options=options) for mode in options.windows}
    cut = found.pop("first", 0.5)
    is_right = abs(cut - 0.5) <= MOST_FROM_CHANCE and all(
        each >= cut + LEAST_ABOVE for each in found.values()
    )
    sys.exit(0 if is_right else 1)


def write_texts(path: Path, number: int, seed: int) -> None:
    """So many labeled texts, half of each label."""
    draw = random.Random(seed)
    with gzip.open(BOOKS, "rt", encoding="utf-8") as book:
        sentences = [
            each for paragraph in islice(book, PARAGRAPHS) for each in split_sentences(paragraph, "en")
        ]
    with open(path, "w", encoding="utf-8") as file:
        for place in range(number):
            label = "good" if place % 2 else "bad"
            file.write(json.dumps({"text": text_with(label, sentences, draw), "label": label}) + "\n")


def text_with(label: str, sentences: list[str], draw: random.Random) -> str:
    """Sentences of a book in a row; those of the last fifth are opinions."""
    words, at = round(200 * 10 ** draw.random()), draw.randrange(len(sentences) - 400)
    adjectives, kept, number = GOOD if label == "good" else BAD, list[str](), 0
    while number < words:
        is_opinion = number >= 0.8 * words
        kept.append(
            draw.choice(OPINIONS).format(draw.choice(adjectives)) if is_opinion else sentences[at + len(kept)]
        )
        number += len(kept[-1].split())
    return " ".join(kept)


def accuracy(folder: Path, model: str, mode: str, options: argparse.Namespace) -> float:
    """Fine-tune in a process of its own, and print and return the accuracy on the dev texts."""
    task = {"type": "classification", "text": "text", "label": "label", "max_length": 256, "doc_stride": 32}
    files = {"train": str(folder / "train.jsonl"), "dev": str(folder / "dev.jsonl"), "windows": mode}
    training = {
        "epochs": options.epochs,
        "batch_size": 8,
        "learning_rate": options.learning_rate,
        "keep_layers": 2,
    }
    config = {"output_dir": str(folder / mode), "model": model, "task": task | files, "training": training}
    path = folder / f"{mode}.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    begun = time.perf_counter()
    command = [sys.executable, "-m", "bertcli", "finetune", str(path), "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    score = json.loads(done.stdout)["accuracy"]
    print(f"windows: {mode}: accuracy {score:.1%}, {time.perf_counter() - begun:.0f} s", flush=True)
    return score


if __name__ == "__main__":
    main()
