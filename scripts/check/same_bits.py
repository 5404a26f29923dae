"""Two checkouts of bertcli on one machine: do the same commands give the same bits?

    python scripts/check/same_bits.py OLD NEW [--without PATH ...] [--only NAME ...] [--folder FOLDER]

Both are called by their command line (PYTHONPATH=TREE python -m bertcli ...). Each line of the output is one
comparison, with its rule. Fine-tuning is compared twice:

* with dropout, in batches so small that their rows were never grouped, and with neither weight decay (words
  that occur nowhere were not decayed once) nor clipping (its norm adds up other zeros): to the bit, but for
  the norm of the gradient itself;
* without dropout, in batches whose rows were grouped by length once: 1e-6 relative.

`--without` compares with a copy of OLD that lacks a fast path which NEW has no more (`bits/without.py`):
torch's own dense layers round otherwise (`linear`); rows that are not grouped (`row-groups`). Where the bits
are equal then, the path that went is all that differs.

Exit code 1 where anything differs. Needs the extra `onnx`, and about ten minutes on a core.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from bits.data import TASKS
from bits.parts import Both, export, finetune, inference, pretrain, pretrain_family
from bits.tree import Tree
from bits.without import REMOVALS, copy_without

FAMILIES = ("bert", "albert", "electra", "modernbert")
"""Families to pretrain: their objectives are mlm, mlm+sop, rtd and mlm; the last has pre-norm layers."""
PARTS = {
    "pretrain": pretrain,
    **{f"pretrain-{family}": partial(pretrain_family, family=family) for family in FAMILIES},
    **{task: partial(finetune, task=task) for task in TASKS},
    "inference": inference,
    "export": export,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="NAME")
    parser.add_argument("--folder", type=Path, help="an empty folder: keep the runs there")
    parser.add_argument("--without", nargs="+", choices=REMOVALS, default=[], metavar="PATH")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (options.folder or Path(temporary)).resolve()
        old = options.old.resolve()
        if options.without:
            old = copy_without(old, options.without, folder / "old-without")
            print(f"old: without {', '.join(options.without)}")
        both = Both(
            Tree(old, folder / "old"),
            Tree(options.new.resolve(), folder / "new"),
            folder / "shared",
        )
        both.shared.mkdir()
        differing = sum(compare(name, both) for name in options.only)
    print(f"{differing} comparisons differ" if differing else "all equal")
    sys.exit(bool(differing))


def compare(part: str, both: Both) -> int:
    """Run a part and print its comparisons; returns how many differ."""
    differing = 0
    try:
        for comparison, difference, rule in PARTS[part](both):
            differing += bool(difference)
            print(f"{part:<22}{comparison:<54}{difference or 'equal'} ({rule})", flush=True)
    except RuntimeError as error:
        print(f"{part:<22}{error}", flush=True)
        return differing + 1
    return differing


if __name__ == "__main__":
    main()
