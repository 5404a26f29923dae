"""What `bertcli clean` finds of 3,500 documents that are planted in novels, and how long it takes.

    python scripts/check/clean_copies.py NOVELS --out FOLDER [--workers 2]

NOVELS is a glob, in quotes. The novels are cut into documents of 300 to 1,000 words. 3,000 documents are
copied: as they are, with 3, 10 and 20 % of the words changed, with other line breaks, cut to a half, in
capitals. 500 more share a beginning with another, a quarter of its lines, and go on with text of their own.
Prints a table, and time and memory.
"""

from __future__ import annotations

import argparse
import glob
import gzip
import json
import random
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

KINDS = ("exact", "3 % changed", "10 % changed", "20 % changed", "other line breaks", "a half", "capitals")
SHARED = "only the beginning"
EACH, BEGUN = 3000 // len(KINDS), 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("novels")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    options.out.mkdir(parents=True)
    draw = random.Random(0)
    originals = list(documents(options.novels, draw))
    originals, others = originals[:-BEGUN], originals[-BEGUN:]
    planted = list(plant(originals, others, draw))
    draw.shuffle(planted)
    corpus = options.out / "corpus.jsonl"
    with corpus.open("w", encoding="utf-8") as file:
        for kind, text in [("original", text) for text in originals] + planted:
            file.write(json.dumps({"text": text, "kind": kind}) + "\n")
    config = options.out / "config.yaml"
    rules = {"shared_lines": None, "repetition": False, "language": False}
    value = {"output_dir": str(options.out / "run"), "corpus": {"files": str(corpus), "format": "jsonl"}}
    config.write_text(yaml.safe_dump({**value, "clean": rules}), encoding="utf-8")
    begun = time.perf_counter()
    command = [sys.executable, "-m", "bertcli", "clean", str(config), str(options.out / "cleaned")]
    subprocess.run([*command, "--workers", str(options.workers)], check=True)
    seconds = time.perf_counter() - begun
    table(options.out / "cleaned", ["original"] * len(originals) + [kind for kind, _ in planted])
    size, memory = corpus.stat().st_size / 1e6, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    print(f"\n{size:.1f} MB in {seconds:.0f} s, {size / seconds:.1f} MB/s; largest process {memory:.0f} MB")


def documents(novels: str, draw: random.Random) -> Iterator[str]:
    """Paragraphs of novels, joined to documents of 300 to 1,000 words."""
    lines: list[str] = []
    words, wanted = 0, draw.randint(300, 1000)
    for name in sorted(glob.glob(novels)):
        with gzip.open(name, "rt", encoding="utf-8") as file:
            for line in file:
                if line.strip():
                    lines.append(line.strip())
                    words += len(line.split())
                if words >= wanted:
                    yield "\n".join(lines)
                    lines, words, wanted = [], 0, draw.randint(300, 1000)


def plant(originals: list[str], others: list[str], draw: random.Random) -> Iterator[tuple[str, str]]:
    """The kind and the text of each planted document; `others` go on after a beginning that is shared."""
    words = [word for text in draw.sample(originals, 50) for word in text.split()]
    for kind in KINDS:
        for text in draw.sample(originals, EACH):
            yield kind, copy(text, kind, words, draw=draw)
    for text, other in zip(draw.sample(originals, BEGUN), others, strict=True):
        own = text.split("\n")
        yield SHARED, "\n".join([*own[: max(1, len(own) // 4)], other])


def copy(text: str, kind: str, words: list[str], draw: random.Random) -> str:
    """A copy of this kind."""
    if "changed" in kind:
        share = int(kind.split()[0]) / 100
        own = text.split(" ")
        for place in draw.sample(range(len(own)), round(share * len(own))):
            own[place] = draw.choice(words)
        return " ".join(own)
    if kind == "other line breaks":
        own = text.split()
        return "\n".join(" ".join(own[start : start + 12]) for start in range(0, len(own), 12))
    if kind == "a half":
        own = text.split("\n")
        return "\n".join(own[: max(1, len(own) // 2)])
    return text.upper() if kind == "capitals" else text


def table(cleaned: Path, kinds: list[str]) -> None:
    """How many of each kind were left out."""
    import zstandard

    kept: set[int] = set()
    for path in sorted((cleaned / "text").rglob("*.zst")):
        with zstandard.open(path, "rt", encoding="utf-8") as file:
            kept |= {json.loads(line)["document"] - 1 for line in file}
    total, gone = Counter(kinds), Counter(kind for number, kind in enumerate(kinds) if number not in kept)
    print("\n| planted | documents | left out |\n|---|---|---|")
    for kind in ("original", *KINDS, SHARED):
        print(f"| {kind} | {total[kind]:,} | {gone[kind] / total[kind]:.1%} |")


if __name__ == "__main__":
    main()
