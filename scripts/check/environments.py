"""Fresh virtual environments for the checks that install packages from the network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

GIGABYTES = 9
"""Disk for an environment on Linux: PyPI's torch brings CUDA, 5 GB installed and 3 GB while it comes."""


def check_disk(folder: Path, number: int) -> None:
    """Say what so many environments need, and exit with code 2 where `folder` has less."""
    folder.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free / 1e9
    print(f"disk: {number} x {GIGABYTES} GB at most in {folder}, where {free:.0f} GB are free", flush=True)
    if free < GIGABYTES * number:
        print(f"error: {folder}: too little space; name another folder: --folder", file=sys.stderr)
        sys.exit(2)


def environment(folder: Path, python: str, packages: Sequence[str | Path]) -> Path:
    """The programs of an environment with these packages; one that is in `folder` already is used again."""
    if not (folder / "bin" / "python").exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
    install(folder / "bin", packages)
    return folder / "bin"


def install(programs: Path, packages: Sequence[str | Path]) -> None:
    """What pip makes of the packages; other versions than those that are there replace them."""
    pip = [programs / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, *packages], check=True)


def clean(variables: dict[str, str] | None = None) -> dict[str, str]:
    """The variables of this process without those that lead a Python elsewhere, and with others."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return own | (variables or {})
