"""Lines of code of a package, without blank lines, comments and docstrings.

    python scripts/check/lines_of_code.py bertcli [OTHER/bertcli ...]

Prints the total of each tree, the share of imports in it, the median length of its files (all lines), and the
longest one.
"""

from __future__ import annotations

import ast
import statistics
import sys
from pathlib import Path

DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def main() -> None:
    for root in map(Path, sys.argv[1:]):
        files = sorted(root.rglob("*.py"))
        lengths = [len(path.read_text(encoding="utf-8").splitlines()) for path in files]
        total = sum(map(lines_of_code, files))
        median, longest = statistics.median(lengths), max(lengths)
        imports = sum(map(import_lines, files)) / total
        print(
            f"{root}: {total:,} lines of code, {imports:.1%} of them imports; files: median {median:g}, "
            f"longest {longest}"
        )


def import_lines(path: Path) -> int:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)


def lines_of_code(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            docstrings |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return sum(
        bool(line.strip()) and not line.strip().startswith("#") and number not in docstrings
        for number, line in enumerate(text.splitlines(), 1)
    )


if __name__ == "__main__":
    main()
