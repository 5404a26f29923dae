"""A folder and the manifest that seals it: whether it still holds what was written, to the last byte.

manifest.json   {"name": of the folder, "files": {name: {"blake2b": ..., "bytes": ...}}, "blake2b": of these}

What such a folder holds beside the listed files, or under their names with other bytes, is somebody else's.
BLAKE2b (RFC 7693) takes half the time of SHA-256 on processors without instructions for either.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertcli.files import file_hash, sync
from bertcli.owned.mark import MARK, holds_mark

MANIFEST = "manifest.json"
_AT_ONCE = 2
"""Files: a model's weights and its moments, which are nearly all there is."""
_TICK_NS = 50_000_000
"""A file may change within one tick of the file system's clock, and its time stays the same."""

_hashed: dict[tuple[int, int], tuple[int, int, str]] = {}
"""Device and inode -> size, time and hash of a file that this process has read once."""


@dataclass(frozen=True)
class Contents:
    """What stands in a folder: files that its manifest proves to be bertcli's, and all else."""

    own: list[Path]
    others: list[Path]
    """Files, links and empty folders."""


def seal(folder: Path, name: str) -> None:
    """Write the manifest of all that `folder` holds, which is to be called `name`.

    Raises `OSError` where the disk refuses.
    """
    left_out = (folder / MANIFEST, folder / MARK)
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path not in left_out]
    with ThreadPoolExecutor(_AT_ONCE, "checkpoint-seal") as threads:
        entries = list(threads.map(_entry, paths))
    files = {str(path.relative_to(folder)): entry for path, entry in zip(paths, entries, strict=True)}
    (folder / MANIFEST).write_text(_manifest(name, files), encoding="utf-8")


def _entry(path: Path) -> dict[str, Any]:
    sync(path)  # the disk writes one file while another is hashed
    return {"blake2b": _hash_once(path), "bytes": path.stat().st_size}


def find_damage(folder: Path) -> str | None:
    """What is wrong with a sealed folder: with its manifest or with a file of it; None where nothing is.

    A file that the manifest does not name is no damage.
    """
    try:
        _, files = _read(folder)
        entries = [(name, entry["bytes"], entry["blake2b"]) for name, entry in files.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return str(error) if isinstance(error, _ChangedError) else f"{MANIFEST} cannot be read ({error})"
    for name, size, digest in entries:
        path = folder / name
        try:
            if not path.is_file():
                return f"{name} is missing"
            if path.stat().st_size != size:
                return f"{name} has {path.stat().st_size} bytes, not {size}"
            if file_hash(path, "blake2b") != digest:
                return f"the content of {name} has changed"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
    return None


def contents(folder: Path) -> Contents:
    """What stands in `folder`. A folder under another name than its manifest's, a copy, is all others'.

    A file that this process has hashed before is not read again while its size and time stay.
    Raises `OSError` where it cannot be listed.
    """
    try:
        name, files = _read(folder)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        name, files = None, {}
    if name != folder.name:
        files = {}
    own, others = [], []
    for path in walk(folder):
        relative = str(path.relative_to(folder))
        proven = (
            (relative == MANIFEST and files != {})
            or (relative == MARK and holds_mark(path))
            or _is_as_listed(path, files.get(relative))
        )
        (own if proven else others).append(path)
    return Contents(own, others)


def is_whole(folder: Path) -> bool:
    """Whether `folder` is bertcli's, stands under its own name, and holds all that was written."""
    try:
        name, files = _read(folder)
        own = set(contents(folder).own)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False
    return name == folder.name and all(folder / listed in own for listed in files)


def is_renamed(folder: Path) -> bool:
    """Whether a folder that is whole bears another name than it was given: somebody's copy."""
    return _read(folder)[0] != folder.name


def listed_files(folder: Path) -> Sequence[str]:
    """The names in the manifest of `folder`; none where it has no good one."""
    try:
        return list(_read(folder)[1])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def walk(folder: Path) -> list[Path]:
    """Everything in `folder` that holds nothing itself: files, links (not followed) and empty folders."""
    found = []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = folder / entry.name
        inner = walk(path) if entry.is_dir(follow_symlinks=False) else []
        found += inner or [path]
    return found


def _is_as_listed(path: Path, entry: Any) -> bool:
    try:
        status = path.lstat()
        return (
            stat.S_ISREG(status.st_mode)
            and status.st_size == entry["bytes"]
            and _hash_once(path) == entry["blake2b"]
        )
    except (OSError, KeyError, TypeError):
        return False


def _hash_once(path: Path) -> str:
    status = path.stat()
    key, stamp = (status.st_dev, status.st_ino), (status.st_size, status.st_mtime_ns)
    known = _hashed.get(key)
    if known is not None and known[:2] == stamp:
        return known[2]
    digest = file_hash(path, "blake2b")
    if status.st_mtime_ns < time.time_ns() - _TICK_NS:
        _hashed[key] = (*stamp, digest)
    return digest


class _ChangedError(ValueError):
    pass


def _read(folder: Path) -> tuple[Any, dict[str, Any]]:
    text = (folder / MANIFEST).read_bytes().decode("utf-8")
    value = json.loads(text)
    name, files = value["name"], value["files"]
    if text != _manifest(name, files):
        raise _ChangedError(f"{MANIFEST} has changed")
    return name, files


def _manifest(name: Any, files: Any) -> str:
    """The one way to write this list down: no byte of the text can change unnoticed."""
    listed = json.dumps([name, files], indent=1)
    value = {"name": name, "files": files, "blake2b": hashlib.blake2b(listed.encode()).hexdigest()}
    return json.dumps(value, indent=1) + "\n"
