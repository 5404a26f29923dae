"""A folder and the manifest that seals it: whether it still holds what was written, to the last byte.

manifest.json   {"files": {name: {"blake2b": ..., "bytes": ...}}, "blake2b": of that list}

BLAKE2b (RFC 7693) takes half the time of SHA-256 on processors without instructions for either.
"""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bertcli.files import file_hash, sync

MANIFEST = "manifest.json"
_AT_ONCE = 2
"""Files: a model's weights and its moments, which are nearly all there is."""


def seal(folder: Path) -> None:
    """Write the manifest of all that `folder` holds. Raises `OSError` where the disk refuses."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    with ThreadPoolExecutor(_AT_ONCE, "checkpoint-seal") as threads:
        entries = list(threads.map(_entry, paths))
    files = {str(path.relative_to(folder)): entry for path, entry in zip(paths, entries, strict=True)}
    (folder / MANIFEST).write_text(_manifest(files), encoding="utf-8")


def _entry(path: Path) -> dict[str, Any]:
    sync(path)  # the disk writes one file while another is hashed
    return {"blake2b": file_hash(path, "blake2b"), "bytes": path.stat().st_size}


def find_damage(folder: Path) -> str | None:
    """What is wrong with a sealed folder: with its manifest or with a file of it; None where nothing is.

    A file that the manifest does not name is no damage.
    """
    try:
        text = (folder / MANIFEST).read_bytes().decode("utf-8")
        files = json.loads(text)["files"]
        if text != _manifest(files):
            return f"{MANIFEST} has changed"
        entries = [(name, entry["bytes"], entry["blake2b"]) for name, entry in files.items()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return f"{MANIFEST} cannot be read ({error})"
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


def _manifest(files: Any) -> str:
    """The one way to write this list down: no byte of the text can change unnoticed."""
    listed = json.dumps(files, indent=1)
    value = {"files": files, "blake2b": hashlib.blake2b(listed.encode()).hexdigest()}
    return json.dumps(value, indent=1) + "\n"
