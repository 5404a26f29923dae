#!/usr/bin/env python3
"""Whether an installed bertcli works: the wheel in fresh environments, in an empty folder, without extras.

    python scripts/check/wheel.py --python python3.11 python3.13 [--torch 2.11.0] [--folder FOLDER]

For each Python it makes an environment, installs the wheel with `pip install`, which also brings the
dependencies from the network, and does what the README begins with: `bertcli pretrain quickstart`, masks,
`bertcli finetune spam`, a prediction. --torch takes this version of torch. Exit code 1: a command failed.

It says the disk that it needs before it begins. An environment that is in FOLDER already is used again.
Needs the package build.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from environments import check_disk, clean, environment

ROOT = Path(__file__).parents[2]
COMMANDS = (
    ("--version",),
    ("config",),
    ("check-data", "quickstart"),
    ("show-batch", "quickstart", "-n", "1"),
    ("estimate", "quickstart"),
    ("prepare", "quickstart"),
    ("pretrain", "quickstart"),
    ("predict-mask", "runs/quickstart", "--input", "quickstart-sentences", "--top-k", "1"),
    ("finetune", "spam"),
    ("predict", "runs/spam", "Call 0800 123456 to claim your prize", "See you at six"),
)
SHOWN = 3
"""Last lines of a command's output that are printed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters")
    parser.add_argument("--torch", help="a version of torch; default: what pip takes")
    parser.add_argument("--folder", type=Path, help="where environments are made and kept")
    parser.add_argument("--set", nargs="*", default=[], help="keys of the pretraining, to make it shorter")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        check_disk(folder, len(given.python))
        wheel = build(Path(temporary))
        failed = [python for python in given.python if not works(python, wheel, folder, given)]
    sys.exit(bool(failed))


def build(folder: Path) -> Path:
    """The wheel that `python -m build` makes of a copy of this checkout's files."""
    source = folder / "source"
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in files.splitlines():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    command = [sys.executable, "-m", "build", "--outdir", folder, source]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("*.whl"))


def works(python: str, wheel: Path, folder: Path, given: argparse.Namespace) -> bool:
    """Whether every command ends well, which is printed."""
    name = f"{Path(python).name}-torch-{given.torch or 'newest'}"
    packages = [wheel, *([f"torch=={given.torch}"] if given.torch else [])]
    start = time.monotonic()
    programs = environment(folder / name, python, packages)
    versions = subprocess.run(
        [programs / "python", "-c", "import sys, torch; print(sys.version.split()[0], torch.__version__)"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    print(f"Python and torch: {versions.strip()}; installed in {time.monotonic() - start:.0f} s", flush=True)
    with tempfile.TemporaryDirectory() as empty:
        return all(ends_well(programs, words, Path(empty), given.set) for words in COMMANDS)


def ends_well(programs: Path, words: Sequence[str], folder: Path, changes: Sequence[str]) -> bool:
    settings = [f"--set={each}" for each in changes if words[-1] == "quickstart"]
    start = time.monotonic()
    command = [programs / "bertcli", *words, *settings]
    done = subprocess.run(command, cwd=folder, env=clean(), capture_output=True, text=True, check=False)
    print(f"$ bertcli {' '.join(words)}    # exit code {done.returncode}, {time.monotonic() - start:.0f} s")
    output = done.stdout if done.returncode == 0 else done.stdout + done.stderr
    print(*(f"    {line}" for line in output.splitlines()[-SHOWN:]), sep="\n", flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    main()
