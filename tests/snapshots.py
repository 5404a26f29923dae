"""A folder before and after a command: what stood there, and what of it is gone or changed."""

from __future__ import annotations

import os
from pathlib import Path

Snapshot = dict[str, tuple[str, bytes]]


def snapshot(folder: Path) -> Snapshot:
    """Name -> what stands there: the bytes of a file, where a link leads, or a folder."""
    found: Snapshot = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path).encode())
        elif path.is_dir():
            found[name] = ("folder", b"")
        else:
            found[name] = ("file", path.read_bytes())
    return found


def compare(before: Snapshot, after: Snapshot) -> list[str]:
    """Every file, link and folder that is gone, or is something else now."""
    return [
        f"{name}: {'gone' if name not in after else 'changed'}"
        for name, entry in before.items()
        if after.get(name) != entry
    ]
