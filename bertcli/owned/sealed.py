"""A folder sealed by a manifest, which proves that every byte is still as it was written.

manifest.json   {"name": of the folder, "files": {name: {"blake2b": ..., "bytes": ...}}, "blake2b": of these}

Other files in such a folder, or listed names with other bytes, are not bertcli's. BLAKE2b (RFC 7693) takes
half the time of SHA-256 on processors without instructions for either.
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

from bertcli.files import file_hash, plain_text, sync
from bertcli.owned.mark import MARK, holds_mark

MANIFEST = "manifest.json"
_AT_ONCE = 2
"""Files: the weights of a model and its moments are nearly all of the bytes."""
_TICK_NS = 50_000_000
"""A file may change within one tick of the file system's clock and keep its time."""
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What reading a missing or damaged manifest raises."""

_hashed: dict[tuple[int, int], tuple[int, int, str]] = {}
"""Device and inode -> size, time and hash of a file that this process has read once."""


@dataclass(frozen=True)
class Contents:
    """The contents of a folder: files that its manifest proves to be bertcli's, and all others."""

    own: list[Path]
    others: list[Path]
    """Files, links and empty folders."""


def seal(folder: Path, name: str) -> None:
    """Write the manifest of all files in `folder`, which will be renamed to `name`.

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
    """What is wrong with the manifest of a sealed folder, or with a listed file; None: nothing.

    Files that the manifest does not list are ignored.
    """
    try:
        _, files = _read(folder)
        entries = [(name, entry["bytes"], entry["blake2b"]) for name, entry in files.items()]
    except _UNREADABLE as error:
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
    """The contents of `folder`. In a folder with another name than in its manifest, a copy, all are others'.

    A file that this process has already hashed is read again only if its size or time changed.
    Raises `OSError` where `folder` cannot be listed.
    """
    name, files = _listed(folder)
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


def is_intact(folder: Path) -> bool:
    """Whether `folder` is bertcli's, has its own name, and holds all that was written."""
    try:
        name, files = _read(folder)
        own = set(contents(folder).own)
    except _UNREADABLE:
        return False
    return name == folder.name and all(folder / listed in own for listed in files)


def is_renamed(folder: Path) -> bool:
    """Whether an intact folder has another name than in its manifest: a copy."""
    return _read(folder)[0] != folder.name


def listed_files(folder: Path) -> Sequence[str]:
    """The names in the manifest of `folder`; none where it is missing or damaged."""
    return list(_listed(folder)[1])


def _listed(folder: Path) -> tuple[Any, dict[str, Any]]:
    try:
        return _read(folder)
    except _UNREADABLE:
        return None, {}


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
    text = plain_text(folder / MANIFEST)
    value = json.loads(text)
    name, files = value["name"], value["files"]
    if text != _manifest(name, files):
        raise _ChangedError(f"{MANIFEST} has changed")
    return name, files


def _manifest(name: Any, files: Any) -> str:
    """The only way to write this list: no byte of the text can change unnoticed."""
    listed = json.dumps([name, files], indent=1)
    value = {"name": name, "files": files, "blake2b": hashlib.blake2b(listed.encode()).hexdigest()}
    return json.dumps(value, indent=1) + "\n"
