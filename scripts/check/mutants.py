"""Random small faults in the code: how many of them do the tests of their own folder find?

    python scripts/check/mutants.py TREE [--number 100] [--seed 0] [--folders FOLDER ...] [--processes 2]

TREE is a checkout. A fault (a mutant) is one changed operator or number, such as `<=` in place of `<`, drawn
from all such places in the folders. It is written into a copy of the tree, and the tests in tests/FOLDER
run to their first failure: those of a file of the same name first, because they find most
faults, then all. A mutant that no test finds is printed with its place. The last line gives the share of
those that were found. Some mutants change nothing that can be seen, so that 100 % is out of reach. Before
all this the tests of each folder run once without a mutant, and must pass.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue

FOLDERS = ("batches", "objectives", "tasks", "training", "tokenizer", "folders")
SWAPS = {
    **{"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="},
    **{"in": "not in", "not in": "in", "is": "is not", "is not": "is", "and": "or", "or": "and"},
    **{"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*"},
}
NO_CODE = {".git", ".venv", "runs"}
"""What lies in the root of a checkout and is not copied."""
LONGEST = 900
"""Seconds after which the tests of a mutant are stopped. Such a mutant is found: it never ends."""


@dataclass(frozen=True)
class Mutant:
    """The replacement of characters `start` to `end` of a file by `text`."""

    folder: str
    path: Path
    """The file, relative to the tree."""
    line: int
    start: int
    end: int
    text: str


def mutants_of(path: Path, folder: str, tree: Path) -> Iterator[Mutant]:
    """All mutants of a file of a folder, in the order of the syntax tree."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))

    def at(line: int, column: int) -> int:
        """The character at a place, whose column counts bytes."""
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    mutant = partial(Mutant, folder, path.relative_to(tree))

    def between(left: ast.expr, right: ast.expr) -> Iterator[Mutant]:
        first, last = at(left.end_lineno or 0, left.end_col_offset or 0), at(right.lineno, right.col_offset)
        operator = source[first:last].strip(" ()\n")
        if operator in SWAPS:
            start = source.index(operator, first)
            yield mutant(left.end_lineno or 0, start, start + len(operator), SWAPS[operator])

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
            yield mutant(node.lineno, *place, text=str(changed))


def code_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of code that runs, without annotations, and without f-strings, whose places are not exact."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST) and not isinstance(node, ast.JoinedStr):
                yield node
                yield from code_nodes(node)


def passes(tree: Path, *tests: Path) -> bool:
    """True if these tests, files or folders of the tree, pass."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *map(str, tests)]
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(tree),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    process = subprocess.Popen(
        command,
        cwd=tree,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(timeout=LONGEST) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # what it started, too


def is_found(mutant: Mutant, tree: Path) -> bool:
    """True if a test of the folder fails with the mutant in this copy of the tree."""
    path = tree / mutant.path
    source = path.read_text(encoding="utf-8")
    path.write_text(source[: mutant.start] + mutant.text + source[mutant.end :], encoding="utf-8")
    folder = tree / "tests" / mutant.folder
    try:
        nearest = sorted(folder.rglob(f"test_{path.name}"))
        return bool(nearest and not passes(tree, *nearest)) or not passes(tree, folder)
    finally:
        path.write_text(source, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folders", nargs="+", default=list(FOLDERS))
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    files = [
        (path, folder)
        for folder in options.folders
        for path in sorted((options.tree / "bertcli" / folder).rglob("*.py"))
    ]
    every = [mutant for path, folder in files for mutant in mutants_of(path, folder, options.tree)]
    chosen = random.Random(options.seed).sample(every, min(options.number, len(every)))
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as copies,
        ThreadPoolExecutor(options.processes) as pool,
    ):
        trees: SimpleQueue[Path] = SimpleQueue()

        def ignored(path: str, _: list[str]) -> set[str]:
            return NO_CODE if Path(path) == options.tree else set()

        for number in range(options.processes):
            tree = Path(copies) / str(number)
            shutil.copytree(options.tree, tree, ignore=ignored)
            trees.put(tree)

        def in_a_copy(do: Callable[[Path], bool]) -> bool:
            tree = trees.get()
            try:
                return do(tree)
            finally:
                trees.put(tree)

        folders = [
            lambda tree, folder=folder: passes(tree, tree / "tests" / folder) for folder in options.folders
        ]
        for folder, passed in zip(options.folders, pool.map(in_a_copy, folders), strict=True):
            if not passed:
                sys.exit(f"error: the tests of {folder} fail without a mutant")
        tries = [lambda tree, mutant=mutant: is_found(mutant, tree) for mutant in chosen]
        found = 0
        for number, (mutant, is_) in enumerate(zip(chosen, pool.map(in_a_copy, tries), strict=True), start=1):
            found += is_
            if not is_:
                source = (options.tree / mutant.path).read_text(encoding="utf-8")
                change = f"{source[mutant.start : mutant.end]} -> {mutant.text}"
                print(f"{number}: {mutant.path}:{mutant.line}: {change}: no test fails", flush=True)
        print(f"{found} of {len(chosen)} mutants found ({found / len(chosen):.0%}), of {len(every):,} places")


if __name__ == "__main__":
    main()
