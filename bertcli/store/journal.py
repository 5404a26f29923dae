"""The folder of an unfinished build: which process may write there, and how far the build came."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bertcli.errors import UserError
from bertcli.files import flush_to_disk, has_file, is_lock, lock_file, plain_text
from bertcli.owned.mark import NOTE
from bertcli.owned.sealed import walk
from bertcli.store.manifest import MANIFEST
from bertcli.store.writer import BuildProgress, SideProgress

JOURNAL = "building.json"
LOCK = "building.lock"
_TOKENIZER = ("vocab.txt", "tokenizer.json", "tokenizer_config.json")
_FILES = {JOURNAL, f"{JOURNAL}.new", LOCK, MANIFEST, NOTE, *(f"tokenizer/{name}" for name in _TOKENIZER)}
NOTE_PARTIAL = re.compile(rf"\.{re.escape(NOTE)}\.[0-9a-f]{{8}}\.partial")
"""A partly written note, which a kill leaves behind."""
_ARRAY = re.compile(r"(train|heldout)/\w+\.(bin|hashes)|hashes\.bin")


@dataclass
class Journal:
    """`building.json`: replaced atomically, after the arrays that it describes are on the disk."""

    key: dict[str, Any]
    """What is built, by which options, from which files: a build with another key is not resumed."""
    tokenizer_hash: str = ""
    """Empty until the folder holds the tokenizer."""
    hashes: list[str] = field(default_factory=list)
    """SHA-256 of each file read to its end."""
    progress: BuildProgress = field(default_factory=BuildProgress)


def read_journal(folder: Path, key: dict[str, Any]) -> Journal | None:
    """The journal of the build of `key` in `folder`; None: missing, damaged, or of another build."""
    path = folder / JOURNAL
    if not has_file(path):
        return None
    try:
        value = json.loads(plain_text(path))
        if value.pop("sha256") != _hash(value) or value["key"] != key:
            return None
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    progress = value["progress"]
    progress["sides"] = {name: SideProgress(**side) for name, side in progress["sides"].items()}
    return Journal(key, value["tokenizer_hash"], value["hashes"], progress=BuildProgress(**progress))


def write_journal(folder: Path, journal: Journal) -> None:
    """Replace `building.json` atomically; on the disk when this returns."""
    new = folder / f"{JOURNAL}.new"
    with open(new, "w", encoding="utf-8") as file:
        value = asdict(journal)
        json.dump(value | {"sha256": _hash(value)}, file)
        flush_to_disk(file)
    os.replace(new, folder / JOURNAL)


def _hash(journal: dict[str, Any]) -> str:
    """Guards against a wrong number, which would leave out documents without a message."""
    return hashlib.sha256(json.dumps(journal, sort_keys=True).encode()).hexdigest()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock `folder` against other builds; it is created if missing.

    Raises `UserError` that names the other build, or a path in the folder that no build wrote.
    """
    refusal, instead = (
        f"{folder}: this store is being built by",
        "wait for it, or name another folder in corpus.store",
    )
    with ExitStack() as held:
        try:
            _check_own(folder)
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(lock_file(folder / LOCK, refusal, instead))
        except FileNotFoundError:  # the other build was complete in this moment, and renamed the folder
            raise UserError(f"{refusal} another process; {instead}") from None
        yield


def clear_folder(folder: Path) -> None:
    """Remove what another build left in `folder`, except the lock; the journal first."""
    paths = [path for path in walk(folder) if path != folder / LOCK]
    for path in sorted(paths, key=lambda path: path.name != JOURNAL):
        path.rmdir() if path.is_dir() else path.unlink()
    for inner in sorted({path.parent for path in paths if path.parent != folder}, reverse=True):
        inner.rmdir()


def _check_own(folder: Path) -> None:
    """Raise `UserError` where `folder` holds anything that no build wrote; the lock proves that one did."""
    if not os.path.lexists(folder):
        return
    others = [folder]
    if folder.is_dir() and not folder.is_symlink():
        paths = walk(folder)
        others = [path for path in paths if not _is_of_a_build(path, path.relative_to(folder))]
        if paths and not others and not is_lock(folder / LOCK):
            others = paths
    if others:
        raise UserError(
            f"{others[0]}: bertcli did not write this, and the store cannot be built there; move it "
            "elsewhere, or name another folder in corpus.store"
        )


def _is_of_a_build(path: Path, name: Path) -> bool:
    """Whether a build writes files of this name."""
    if path.is_symlink():
        return False
    inner = re.sub(r"^(part-\d+-of-\d+/?|cut-)", "", str(name))
    return (
        path.is_dir() or inner in _FILES or bool(_ARRAY.fullmatch(inner) or NOTE_PARTIAL.fullmatch(str(name)))
    )
