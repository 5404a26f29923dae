"""`bertcli clean` beside datatrove's own pipeline of the same steps.

    python scripts/bench/clean.py NOVELS --out FOLDER --python PYTHON [--copies 10] [--rounds 3]

NOVELS is a glob, in quotes; the novels are cut into documents of 300 to 1,000 words, and stand in the corpus
once and `--copies` times more, a file for each. PYTHON belongs to an environment with datatrove and what its
rules need: pip install datatrove tokenizers ftfy spacy zstandard nltk regex orjson "xxhash<4". Both mend
encodings, leave out what repeats itself and near copies (MinHash of runs of three words, 40 bands of 3), and
write JSON lines with zstd, with two tasks at a time. Prints for each round the seconds of both, the most
memory, and the documents that stayed; then the medians and the median ratio of a round.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import yaml

sys.path.insert(0, str(Path(__file__).parents[2]))
from scripts.check.clean_copies import documents

DATATROVE = """
import sys
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    MinhashDedupBuckets, MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature,
)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.filters import GopherRepetitionFilter
from datatrove.pipeline.formatters import FTFYFormatter
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter

corpus, out, tasks, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
config = MinhashConfig(n_grams=3, num_buckets=40, hashes_per_bucket=3)


def run(*steps, tasks=tasks):
    LocalPipelineExecutor([*steps], tasks=tasks, workers=workers, logging_dir=None).run()


def main():
    run(JsonlReader(corpus), FTFYFormatter(), GopherRepetitionFilter(), JsonlWriter(f"{out}/mended"))
    run(JsonlReader(f"{out}/mended"), MinhashDedupSignature(f"{out}/signatures", config))
    run(MinhashDedupBuckets(f"{out}/signatures", f"{out}/buckets", config=config), tasks=40)
    run(MinhashDedupCluster(f"{out}/buckets", f"{out}/remove", config=config), tasks=1)
    write = JsonlWriter(f"{out}/text", "${rank}.jsonl.zst", compression="zstd")
    run(JsonlReader(f"{out}/mended"), MinhashDedupFilter(f"{out}/remove"), write)


if __name__ == "__main__":
    main()
"""
WORKERS = 2


class Cost(NamedTuple):
    """Seconds, the most MB that all processes held together, and documents that stayed."""

    seconds: float
    memory: float
    stayed: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("novels")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    out: Path = options.out.resolve()
    corpus, tasks = write_corpus(options.novels, out, options.copies), options.copies + 1
    (out / "pipeline.py").write_text(DATATROVE)
    rules = {"shared_lines": None, "language": False, "fewest_words": None}
    value = {
        "output_dir": str(out / "run"),
        "corpus": {"files": str(corpus), "format": "jsonl"},
        "clean": rules,
    }
    (out / "config.yaml").write_text(yaml.safe_dump(value))
    placing = ["--tasks", str(tasks), "--workers", str(WORKERS)]
    commands = {
        "bertcli": [sys.executable, "-m", "bertcli", "clean", str(out / "config.yaml"), "{}", *placing],
        "datatrove": [options.python, str(out / "pipeline.py"), str(corpus), "{}", str(tasks), str(WORKERS)],
    }
    size = sum(path.stat().st_size for path in corpus.iterdir()) / 1e6
    print(f"{size:,.0f} MB in {tasks} files\n\n| | seconds | memory | stayed |\n|---|---|---|---|")
    rounds = [
        {name: cost(command, out / name) for name, command in commands.items()} for _ in range(options.rounds)
    ]
    for name in commands:
        columns = zip(*(one[name] for one in rounds), strict=True)
        row(f"{name}, median", Cost(*(statistics.median(column) for column in columns)))
    ratio = statistics.median(one["datatrove"].seconds / one["bertcli"].seconds for one in rounds)
    print(f"\ndatatrove takes {ratio:.2f} times as long")


def row(name: str, found: Cost) -> None:
    print(f"| {name} | {found.seconds:.0f} s | {found.memory:.0f} MB | {found.stayed:,} |", flush=True)


def write_corpus(novels: str, out: Path, copies: int) -> Path:
    """The documents as a JSON lines file, and its copies."""
    corpus = out / "corpus"
    corpus.mkdir(parents=True)
    first = corpus / "00.jsonl"
    with first.open("w", encoding="utf-8") as file:
        for text in documents(novels, random.Random(0)):
            file.write(json.dumps({"text": text}) + "\n")
    for number in range(1, copies + 1):
        shutil.copy(first, corpus / f"{number:02}.jsonl")
    return corpus


def cost(command: list[str], out: Path) -> Cost:
    """Run the command, in which {} stands for the folder to write."""
    shutil.rmtree(out, ignore_errors=True)
    given = [part.replace("{}", str(out)) for part in command]
    begun, memory = time.perf_counter(), 0.0
    with (out.parent / "said.txt").open("w+") as said:
        child = subprocess.Popen(given, stdout=said, stderr=said, start_new_session=True, cwd=out.parent)
        while child.poll() is None:
            memory = max(memory, resident(child.pid))
            time.sleep(0.1)
        seconds = time.perf_counter() - begun
        if child.returncode:
            said.seek(0)
            sys.exit(said.read()[-2000:])
    found = Cost(seconds, memory, stayed=count(out / "text"))
    row(out.name, found)
    return found


def resident(session: int) -> float:
    """MB that the processes of a session hold; what they share counts for each."""
    listed = subprocess.run(["ps", "-o", "rss=", "-s", str(session)], capture_output=True, text=True)
    return sum(map(int, listed.stdout.split())) / 1e3


def count(folder: Path) -> int:
    import zstandard

    total = 0
    for path in folder.rglob("*.zst"):
        with zstandard.open(path, "rt", encoding="utf-8") as file:
            total += sum(1 for _ in file)
    return total


if __name__ == "__main__":
    main()
