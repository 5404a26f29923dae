"""Names for folders if a name is in use: step-00000500, step-00000500.1, ...; best, best.1, ..."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from bertcli.owned.run_layout import by_number
from bertcli.owned.sealed import is_intact


def free_path(folder: Path) -> Path:
    """`newest_path`, or the next free number if the folder there is damaged or not written by bertcli.

    Never a lower number than that of a complete folder, which `newest_path` would then return.
    """
    path = newest_path(folder)
    numbers = itertools.count(by_number(path)[1] + 1)
    while os.path.lexists(path) and (path.is_symlink() or not is_intact(path)):
        path = folder.with_name(f"{folder.name}.{next(numbers)}")
    return path


def newest_path(folder: Path) -> Path:
    """The complete folder with the highest number; `folder` itself if there is none."""
    found = [path for path in folder.parent.glob(f"{folder.name}.*") if path.suffix[1:].isdecimal()]
    return max([path for path in found if is_intact(path)], key=by_number, default=folder)
