"""The same corpus gives the same vocabulary, bit for bit, in every process.

    python scripts/check/vocabularies.py TEXTS [--size 8192]

Trains each kind (WordPiece, byte-level BPE, Unigram) by `bertcli tokenizer train` in three processes, one
after the other and with different hash seeds, and compares the bytes of all files. TEXTS are files of a
corpus. Unigram needs the extra `unigram`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import get_args

sys.path.insert(0, str(Path(__file__).parents[2]))

from bertcli.families.family import TokenizerKind

PROCESSES = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--size", type=int, default=8192)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for kind in get_args(TokenizerKind):
            hashes = [
                train(
                    kind, options.texts, options.size, folder=Path(scratch) / f"{kind}-{number}", seed=number
                )
                for number in range(PROCESSES)
            ]
            verdict = "the same bytes" if len(set(hashes)) == 1 else "DIFFERENT"
            print(f"{kind:<12}{PROCESSES} processes: {verdict} ({hashes[0][:12]})", flush=True)
            if len(set(hashes)) > 1:
                sys.exit(1)


def train(kind: str, texts: list[str], size: int, folder: Path, seed: int) -> str:
    """The hash of all files that the command writes."""
    command = [sys.executable, "-m", "bertcli", "tokenizer", "train", *texts, "--output", str(folder)]
    options = ["--kind", kind, "--vocab-size", str(size)]
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    subprocess.run([*command, *options], check=True, env=environment, stdout=subprocess.DEVNULL)
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    main()
