"""A store that was built aside gets its name."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def publish(partial: Path, folder: Path) -> None:
    """Rename a whole store to `folder`; one that stood there goes."""
    old = folder.with_name(f"{folder.name}.old")
    if old.exists():
        shutil.rmtree(old)
    if folder.exists():
        os.rename(folder, old)
    os.rename(partial, folder)
    if old.exists():
        shutil.rmtree(old)
