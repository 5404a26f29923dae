"""The folder of an unfinished build: who may write there, and how far it came."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bertcli.files import lock_file
from bertcli.store.writer import BuildProgress, SideProgress

JOURNAL = "building.json"
LOCK = "building.lock"


@dataclass
class Journal:
    """`building.json`: replaced as a whole, after the arrays it speaks of are on the disk."""

    key: dict[str, Any]
    """What is being built, by which options, from which files: another key's build is not gone on with."""
    tokenizer_hash: str = ""
    """Empty until the tokenizer stands in the folder."""
    hashes: list[str] = field(default_factory=list)
    """SHA-256 of each file read to its end."""
    progress: BuildProgress = field(default_factory=BuildProgress)


def read_journal(folder: Path, key: dict[str, Any]) -> Journal | None:
    """How far the build of `key` came in `folder`; None where there is none, another's, or a damaged one."""
    path = folder / JOURNAL
    if not path.is_file():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        if value.pop("sha256") != _hash(value) or value["key"] != key:
            return None
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    progress = value["progress"]
    progress["sides"] = {name: SideProgress(**side) for name, side in progress["sides"].items()}
    return Journal(key, value["tokenizer_hash"], value["hashes"], BuildProgress(**progress))


def write_journal(folder: Path, journal: Journal) -> None:
    """Replace `building.json` atomically; on the disk when this returns."""
    new = folder / f"{JOURNAL}.new"
    with open(new, "w", encoding="utf-8") as file:
        value = asdict(journal)
        json.dump(value | {"sha256": _hash(value)}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, folder / JOURNAL)


def _hash(journal: dict[str, Any]) -> str:
    """A wrong number would leave documents out unseen."""
    return hashlib.sha256(json.dumps(journal, sort_keys=True).encode()).hexdigest()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold `folder`, made where it is missing, against other builds. Raises `UserError` naming the other."""
    folder.mkdir(parents=True, exist_ok=True)
    with lock_file(
        folder / LOCK,
        f"{folder}: this store is being built by",
        "wait for it, or name another folder in corpus.store",
    ):
        yield


def clear_folder(folder: Path) -> None:
    """Remove all that another build left in `folder`, but for the lock; the journal first."""
    (folder / JOURNAL).unlink(missing_ok=True)
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()
