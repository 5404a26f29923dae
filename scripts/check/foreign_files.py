"""Random foreign files, folders and links under names that bertcli uses, random commands: all of them stay.

    python scripts/check/foreign_files.py [--trees 2000] [--seed 0] [--cli]

Each tree holds a corpus, a model, a finished or a killed run, and things of somebody else. After a command
(or two) every file, link and folder that was not bertcli's stands where it stood, with the same bytes.
--cli runs each command in a process of its own. Exit code 1 where anything is gone or changed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.foreign import Base, check_tree


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trees", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cli", action="store_true")
    options = parser.parse_args()
    began, bad, ends = time.monotonic(), 0, Counter[str]()
    with tempfile.TemporaryDirectory() as scratch:
        base = Base(Path(scratch) / "base")
        for seed in range(options.seed, options.seed + options.trees):
            outcome = check_tree(base, seed, options.cli)
            ends.update(outcome.ends)
            if outcome.lost:
                bad += 1
                print(f"tree {seed}: {' ; '.join(outcome.commands)}")
                print("\n".join(f"    {line}" for line in outcome.lost[:6]), flush=True)
    minutes = (time.monotonic() - began) / 60
    print(", ".join(f"{number} commands {end}" for end, number in ends.most_common()))
    print(
        f"{options.trees - bad} of {options.trees} trees keep every foreign byte, name and link "
        f"({minutes:.1f} min, {options.trees / minutes:.0f} a minute)"
    )
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
