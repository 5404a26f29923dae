"""Marks: small files which prove that bertcli made a folder, and which files in it are bertcli's.

.bertcli.json             in a run folder, a token store, the folder of a tracker: names -> allowed hashes
.bertcli-unfinished.json  in a folder that is being written or removed: the folder's name, and the process
"""

import contextlib
import glob
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from bertcli.system.errors import UserError
from bertcli.system.files import file_hash, plain_bytes, plain_text, sync, write_text

NOTE = ".bertcli.json"
MARK = ".bertcli-unfinished.json"
Kind = Literal["run", "store", "tracker", "clean"]
_BEGUN = re.compile(r"\..+\.(partial|removed)-[0-9a-f]{8}")
"""Names of the folders that `new_marked_folder` makes for `bertcli.folders.sealed`."""


@dataclass
class Note:
    """The files that bertcli wrote in a folder: name -> allowed BLAKE2b hashes, none if it may grow.

    In the folder of a tracker, the names are patterns, of files in folders too (`remove_matching`).
    """

    kind: Kind
    files: dict[str, list[str]] = field(default_factory=dict)


def read_note(folder: Path, kind: Kind | None = None) -> Note | None:
    """The note of a folder; None if bertcli did not make it, or not as `kind`, or if the note is damaged."""
    value = _read(folder / NOTE)
    if value is None or value.get("kind") not in get_args(Kind) or kind not in (None, value["kind"]):
        return None
    return Note(value["kind"], value["files"])


def write_note(folder: Path, note: Note) -> None:
    """Replace the note of a folder atomically.

    Raises `UserError` if something else has its name, `OSError` if the disk refuses.
    """
    if os.path.lexists(folder / NOTE) and _read(folder / NOTE) is None:
        raise UserError(f"{folder / NOTE}: this is not what bertcli wrote there; move it elsewhere")
    write_text(folder / NOTE, _signed({"kind": note.kind, "files": note.files}))


def is_own_file(path: Path, kind: Kind = "run") -> bool:
    """True if the note beside a file proves it to be bertcli's: by a hash, or for a growing file by its
    name."""
    note = read_note(path.parent, kind)
    if note is None or path.name not in note.files or not _is_regular(path):
        return False
    hashes = note.files[path.name]
    return not hashes or file_hash(path, "blake2b") in hashes


def write_own(path: Path, text: str) -> None:
    """Write a file of a run folder atomically; before that, add it to the note.

    Raises:
        UserError: a file of that name exists that bertcli did not write.
        OSError: the disk refuses.
    """
    data = text.encode()
    note = read_note(path.parent, "run")
    if note is None or (os.path.lexists(path) and not is_own_file(path)):
        raise UserError(
            f"{path}: this is not what bertcli wrote there, so it is left as it is. Move it elsewhere, or "
            "choose another output_dir"
        )
    if path.exists() and plain_bytes(path) == data:
        return
    before = [file_hash(path, "blake2b")] if path.exists() else []
    note.files[path.name] = [*before, hashlib.blake2b(data).hexdigest()]
    write_note(path.parent, note)
    write_text(path, text)


def remove_matching(folder: Path, patterns: Iterable[str]) -> None:
    """Remove the files, the links and the empty folders whose names match, in the order of the patterns.

    Nothing behind a link is removed. Raises `OSError` where the disk refuses.
    """
    real = folder.resolve()
    for pattern in patterns:
        for path in list(folder.glob(pattern)):
            if path.parent.resolve() != real / path.parent.relative_to(folder):
                continue
            if path.is_symlink() or not path.is_dir():
                path.unlink()
            elif not any(path.iterdir()):
                path.rmdir()


def new_marked_folder(parent: Path, purpose: str) -> Path:
    """A new, hidden folder in `parent` with an unused name, marked as bertcli's.

    `parent` is created if missing. Raises `OSError` where the disk refuses, or `parent` is a broken link.
    """
    parent.mkdir(parents=True, exist_ok=True)
    while True:
        folder = parent / f".{purpose}-{secrets.token_hex(4)}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            break
    mark(folder, folder.name)
    return folder


def mark(folder: Path, name: str) -> None:
    """Mark `folder`, under its present or later name `name`, as one that only this process needs."""
    value = {"folder": name, "process": os.getpid(), "host": socket.gethostname()}
    (folder / MARK).write_text(_signed(value), encoding="utf-8")
    sync(folder / MARK)


def holds_mark(path: Path) -> bool:
    """True if a path is a regular file with bertcli's mark in it."""
    return _is_regular(path) and _read(path) is not None


def sweep(parents: Iterable[Path]) -> None:
    """Remove what killed processes left in `parents`: marked folders, and empty ones that `new_marked_folder`
    named.

    The caller holds the lock of the processes that make them. Raises `OSError` where the disk refuses.
    """
    for parent in parents:
        for path in parent.glob(".*") if parent.is_dir() else []:
            if path.is_symlink() or not path.is_dir():
                continue
            value = _read(path / MARK)
            if value is not None and value.get("folder") == path.name:
                shutil.rmtree(path)
            elif _BEGUN.fullmatch(path.name) and not any(path.iterdir()):
                path.rmdir()  # the process was killed before it wrote the mark, or after it removed it


def sweep_killed(parent: Path, purpose: str) -> None:
    """Remove the folders that `new_marked_folder` made for `purpose` in processes of this machine that ended.

    No lock is needed: the mark names the process. Raises `OSError` where the disk refuses.
    """
    for path in parent.glob(f".{glob.escape(purpose)}-*") if parent.is_dir() else []:
        value = _read(path / MARK) if path.is_dir() and not path.is_symlink() else None
        if value is None or value.get("folder") != path.name or value.get("host") != socket.gethostname():
            continue
        if not _is_alive(value["process"]):
            shutil.rmtree(path)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError as error:
        return not isinstance(error, ProcessLookupError)  # a process of another user may not be signaled
    return True


def _is_regular(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return stat.S_ISREG(path.lstat().st_mode)
    return False


def _signed(value: dict[str, Any]) -> str:
    digest = hashlib.blake2b(json.dumps(value, sort_keys=True).encode()).hexdigest()
    return json.dumps(value | {"made_by": "bertcli", "blake2b": digest}, indent=1) + "\n"


def _read(path: Path) -> dict[str, Any] | None:
    """The value of a file that `_signed` wrote; None for any other file."""
    if not _is_regular(path):
        return None
    try:
        text = plain_text(path)
        value = json.loads(text)
        value = {key: value[key] for key in value if key not in ("made_by", "blake2b")}
        return value if _signed(value) == text else None
    except (OSError, ValueError, TypeError, RecursionError):
        return None
