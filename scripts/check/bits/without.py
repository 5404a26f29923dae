"""A copy of the old checkout without a path that the new one lacks: then that path is all that differs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

REMOVALS = {
    "linear": (
        "bertcli/model/linear.py",
        "return _Linear.apply(inputs_RI, weight_OI, bias_O)",
        "return F.linear(inputs_RI, weight_OI, bias_O)",
    ),
    "row-groups": ("bertcli/model/row_groups.py", "WORTH_A_GROUP = 100_000", "WORTH_A_GROUP = 10**15"),
}
"""Path -> the file at ae4a158, what stands there, and what to put there: torch's own, or never a group."""


def copy_without(code: Path, names: Sequence[str], folder: Path) -> Path:
    """Copy a checkout's package to `folder`, without the named paths; returns the folder.

    Raises:
        ValueError: the checkout does not hold what is to be replaced.
    """
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(code / "bertcli", folder / "bertcli", ignore=ignored)
    for name in names:
        file, old, new = REMOVALS[name]
        text = (folder / file).read_text(encoding="utf-8")
        if old not in text:
            raise ValueError(f"{code / file}: has no {old!r}")
        (folder / file).write_text(text.replace(old, new), encoding="utf-8")
    return folder
