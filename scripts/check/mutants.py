"""Random small faults in the code: how many of them do the tests of their own room find?

    python scripts/check/mutants.py TREE [--number 100] [--seed 0] [--rooms ROOM ...] [--processes 2]

TREE is a checkout. A fault (a mutant) is one changed operator or number, such as `<=` in place of `<`, drawn
from all such places in the rooms. It is written into a copy of the tree, and the tests of the room, which are
in tests/ROOM, run to their first failure. A mutant that no test finds is printed with its place. The last
line gives the share of those that were found. Some mutants change nothing that can be seen, so that 100 % is
out of reach.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOMS = ("batches", "objectives", "tasks", "training", "tokenizer", "folders")
SWAPS = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    **{"in": "not in", "not in": "in", "is": "is not", "is not": "is", "and": "or", "or": "and"},
    **{"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*"},
}
LONGEST = 1200
"""Seconds after which the tests of a mutant are stopped. Such a mutant is found: it never ends."""


@dataclass(frozen=True)
class Mutant:
    """The replacement of characters `start` to `end` of a file by `text`."""

    path: Path
    line: int
    start: int
    end: int
    text: str


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All mutants of a file, in the order of the syntax tree."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def at(line: int, column: int) -> int:
        """The character at a place, whose column counts bytes."""
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def between(left: ast.expr, right: ast.expr) -> Iterator[Mutant]:
        first, last = at(left.end_lineno or 0, left.end_col_offset or 0), at(right.lineno, right.col_offset)
        operator = source[first:last].strip(" ()\n")
        if operator in SWAPS:
            start = source.index(operator, first)
            yield Mutant(path, left.end_lineno or 0, start, start + len(operator), SWAPS[operator])

    for node in code_nodes(ast.parse(source)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            yield from between(node.left, node.comparators[0])
        elif isinstance(node, ast.BinOp):
            yield from between(node.left, node.right)
        elif isinstance(node, ast.BoolOp):
            yield from between(node.values[0], node.values[1])
        elif isinstance(node, ast.Constant) and isinstance(node.value, int):  # a bool is one too
            place = at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0)
            changed = not node.value if isinstance(node.value, bool) else node.value + 1
            yield Mutant(path, node.lineno, *place, text=str(changed))


def code_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of code that runs, without annotations, and without f-strings, whose places are not exact."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not isinstance(node, ast.JoinedStr):
                yield node
                yield from code_nodes(node)


def is_found(mutant: Mutant, room: str, tree: Path, processes: int) -> bool:
    """True if a test of the room fails with the mutant."""
    source = mutant.path.read_text(encoding="utf-8")
    mutant.path.write_text(source[: mutant.start] + mutant.text + source[mutant.end :], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"tests/{room}"]
    parallel = ["-n", str(processes), "--dist", "worksteal"] if processes > 1 else []
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    try:
        done = subprocess.run(
            [*command, *parallel],
            cwd=tree,
            env=environment,
            capture_output=True,
            timeout=LONGEST,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return True
    finally:
        mutant.path.write_text(source, encoding="utf-8")
    return done.returncode != 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rooms", nargs="+", default=list(ROOMS))
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = Path(folder) / "tree"
        shutil.copytree(options.tree, tree, ignore=shutil.ignore_patterns(".git", ".venv", "runs"))
        files = [
            (path, room) for room in options.rooms for path in sorted((tree / "bertcli" / room).rglob("*.py"))
        ]
        every = [(mutant, room) for path, room in files for mutant in mutants_of(path)]
        chosen = random.Random(options.seed).sample(every, min(options.number, len(every)))
        found = 0
        for number, (mutant, room) in enumerate(chosen, start=1):
            if is_found(mutant, room, tree, processes=options.processes):
                found += 1
                continue
            place = f"{mutant.path.relative_to(tree)}:{mutant.line}"
            old = mutant.path.read_text(encoding="utf-8")[mutant.start : mutant.end]
            print(f"{number}: {place}: {old} -> {mutant.text}: no test fails", flush=True)
        print(f"{found} of {len(chosen)} mutants found ({found / len(chosen):.0%}), of {len(every):,} places")


if __name__ == "__main__":
    main()
