"""What `bertcli clean` finds of 3,500 documents that are planted in novels, and how long it takes.

    python scripts/check/clean_copies.py NOVELS --out FOLDER [--workers 2] [--again]

NOVELS is a glob, in quotes. The novels are cut into documents of 300 to 1,000 words, in twelve files. 3,000
documents are copied: as they are, with 3, 10 and 20 % of the words changed, with other line breaks, cut to a
half, in capitals. 500 more share a beginning with another, a quarter of its lines, and go on with text of
their own. Prints a table, and time and memory. With `--again` the corpus is cleaned once more in other ways:
with other numbers of workers and tasks, killed ten times, and by Ray; each time it says whether all bytes are
the same.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

KINDS = ("exact", "3 % changed", "10 % changed", "20 % changed", "other line breaks", "a half", "capitals")
SHARED = "only the beginning"
EACH, BEGUN = 3000 // len(KINDS), 500
FILES = 12
KILLED = "killed {} times"
KILLS, START = 10, 2.5
"""How often the work is killed, and the seconds in which a command begins."""
WAYS = (
    "--workers 1",
    "--workers 4",
    "--workers 2 --tasks 7",
    KILLED,
    "--engine ray --tasks 5 --workers 2",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("novels")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True)
    draw = random.Random(0)
    originals = list(documents(options.novels, draw))
    originals, others = originals[:-BEGUN], originals[-BEGUN:]
    planted = list(plant(originals, others, draw))
    draw.shuffle(planted)
    rows = [("original", text) for text in originals] + planted
    corpus, kinds = options.out / "corpus", dict[tuple[str, int], str]()
    corpus.mkdir()
    each = -(-len(rows) // FILES)
    for number in range(FILES):
        path, own = corpus / f"{number:02}.jsonl", rows[number * each : (number + 1) * each]
        path.write_text("".join(json.dumps({"text": text}) + "\n" for _, text in own), encoding="utf-8")
        kinds |= {(str(path.resolve()), place): kind for place, (kind, _) in enumerate(own, start=1)}
    config = options.out / "config.yaml"
    rules = {"shared_lines": None, "repetition": False, "language": False}
    value = {"output_dir": str(options.out / "run"), "corpus": {"files": str(corpus), "format": "jsonl"}}
    config.write_text(yaml.safe_dump({**value, "clean": rules}), encoding="utf-8")
    begun = time.perf_counter()
    clean(config, options.out / "cleaned", "--workers", options.workers).wait()
    seconds = time.perf_counter() - begun
    table(options.out / "cleaned", kinds)
    size = sum(path.stat().st_size for path in corpus.iterdir()) / 1e6
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e3
    print(f"\n{size:.1f} MB in {seconds:.0f} s, {size / seconds:.1f} MB/s; largest process {memory:.0f} MB")
    if options.again:
        again(config, options.out, seconds, draw=draw)


def clean(config: Path, out: Path, *options: Any) -> subprocess.Popen[bytes]:
    """The command, in a group of processes of its own."""
    command = [sys.executable, "-m", "bertcli", "clean", str(config), str(out), *map(str, options)]
    return subprocess.Popen(command, start_new_session=True)


def again(config: Path, out: Path, seconds: float, draw: random.Random) -> None:
    """Clean the corpus in other ways, and say whether the bytes are those of `out/cleaned`."""
    for number, way in enumerate(WAYS):
        place, kills = out / f"cleaned-{number}", 0
        if way == KILLED:
            while kills < KILLS and not place.exists():
                work = clean(config, place, "--workers", 2)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    work.wait(timeout=START + seconds * draw.uniform(0.01, 0.1))
                if work.poll() is None:
                    os.killpg(work.pid, signal.SIGKILL)
                    kills += 1
                work.wait()
        if not place.exists():
            clean(config, place, *([] if way == KILLED else way.split())).wait()
        same = contents(place) == contents(out / "cleaned")
        print(f"{way.format(kills)}: {'the same bytes' if same else 'OTHER BYTES'}", flush=True)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


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


def table(cleaned: Path, kinds: dict[tuple[str, int], str]) -> None:
    """How many of each kind were left out. `kinds`: file and number of a document -> its kind."""
    import zstandard

    kept: set[tuple[str, int]] = set()
    for path in sorted((cleaned / "text").rglob("*.zst")):
        with zstandard.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                kept.add((row["file"], row["document"]))
    total, gone = Counter(kinds.values()), Counter(kind for place, kind in kinds.items() if place not in kept)
    print("\n| planted | documents | left out |\n|---|---|---|")
    for kind in ("original", *KINDS, SHARED):
        print(f"| {kind} | {total[kind]:,} | {gone[kind] / total[kind]:.1%} |")


if __name__ == "__main__":
    main()
