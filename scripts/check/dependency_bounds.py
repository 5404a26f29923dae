#!/usr/bin/env python3
"""Whether the bounds in pyproject.toml are true: quick tests with the oldest and the newest dependencies.

    python scripts/check/dependency_bounds.py [--python python3.11] [--only oldest] [--extras onnx serve]
        [--tests tests/config]

It makes an environment with the oldest version of each dependency that `pyproject.toml` allows, and one with
the newest versions that pip finds, and runs tests with both; of the extras, those that are named are
installed. Files of tests that need another package are left out, and counted. Exit code 1: pip finds no such
versions, or a test fails.

It says the disk that it needs before it begins. An environment that is in FOLDER already is used again.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence, Set
from functools import cache
from pathlib import Path

from environments import check_disk, clean, environment

ROOT = Path(__file__).parents[2]
QUICK = (
    *("tests/config", "tests/samples", "tests/tokenizer", "tests/model", "tests/folders/test_folder.py"),
    *("tests/training/test_resume.py", "tests/cli/test_first_try.py"),
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = {
    name: packages
    for name, packages in PROJECT["optional-dependencies"].items()
    if not packages[0].startswith("bertcli[")  # those of other extras
}
TOOLS = (
    *("hypothesis", "packaging", "protobuf", "pytest"),
    *("scikit-learn", "scipy", "sentencepiece", "zstandard"),
)
"""Packages of the tests, the newest in both environments; none limits a dependency's version."""
IMPORTED = {"pyyaml": "yaml", "scikit-learn": "sklearn", "protobuf": "google", "mlflow-skinny": "mlflow"}
"""Packages whose modules have another name."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="the interpreter")
    parser.add_argument("--only", choices=("oldest", "newest"), help="one of the two")
    parser.add_argument("--folder", type=Path, help="where environments are made and kept")
    parser.add_argument("--extras", nargs="+", default=(), choices=EXTRAS, help="extras to install too")
    parser.add_argument("--tests", nargs="+", default=QUICK, help="folders and files of tests")
    given = parser.parse_args()
    required = [*PROJECT["dependencies"], *(each for extra in given.extras for each in EXTRAS[extra])]
    packages = {
        "oldest": [each.replace(">=", "==") for each in required],
        "newest": ["--upgrade", *required],
    }
    names = [given.only] if given.only else list(packages)
    known = {IMPORTED.get(name, name) for name in map(name_of, (*required, *TOOLS))}
    tests, left_out = runnable(given.tests, known | {"bertcli", "tests", "scripts"})
    print(f"tests: {len(tests)} files, without {left_out} that need other packages")
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        check_disk(folder, len(names))
        failed = [name for name in names if not passes(given.python, folder, name, packages[name], tests)]
    sys.exit(bool(failed))


def name_of(requirement: str) -> str:
    """The package of a requirement."""
    return re.split("[^A-Za-z0-9_-]", requirement)[0]


def runnable(given: Sequence[str], known: Set[str]) -> tuple[list[Path], int]:
    """The files of tests that import no other packages than those, and the number of the others."""
    files = [
        file
        for path in map(ROOT.joinpath, given)
        for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])
    ]
    kept = [file for file in files if imports(file) <= known | sys.stdlib_module_names]
    return kept, len(files) - len(kept)


@cache
def imports(file: Path) -> frozenset[str]:
    """The names of the packages that a file imports, also by way of other files of `tests/`."""
    found = set[str]()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        modules += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for module in modules:
            found.add(module.partition(".")[0])
            inner = ROOT / f"{module.replace('.', '/')}.py"
            if module.startswith("tests.") and inner.exists():
                found |= imports(inner)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.importorskip":
            found.add(ast.literal_eval(node.args[0]).partition(".")[0])
    return frozenset(found)


def passes(python: str, folder: Path, name: str, packages: list[str], tests: list[Path]) -> bool:
    """Whether the tests pass in an environment with the packages, whose versions are printed."""
    print(f"\n{name}: {' '.join(packages)}", flush=True)
    try:
        programs = environment(folder / name, python, [*TOOLS, *packages])
    except subprocess.CalledProcessError:
        print(f"{name}: pip finds no such versions", file=sys.stderr)
        return False
    show = "import sys; from importlib.metadata import version; print(sys.version.split()[0], end='')"
    show += "; print(*(f', {name} {version(name)}' for name in sys.argv[1:]), sep='', flush=True)"
    installed = [name_of(each) for each in packages if each != "--upgrade"]
    subprocess.run([programs / "python", "-c", show, *installed], check=True)
    # An old package may use what a new one that it needs has deprecated; users do not see these warnings.
    quiet = ["-q", "-p", "no:cacheprovider", "-W", "ignore::DeprecationWarning"]
    command = [programs / "python", "-m", "pytest", *quiet, *tests]
    variables = clean({"PYTHONPATH": str(ROOT), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"})
    return subprocess.run(command, cwd=ROOT, env=variables, check=False).returncode == 0


if __name__ == "__main__":
    main()
