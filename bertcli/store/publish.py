"""Renames a finished store to its final name; before that, checks that what has the name may be replaced."""

from __future__ import annotations

import os
from pathlib import Path

from bertcli.errors import UserError
from bertcli.owned.mark import NOTE, Note, read_note, write_note
from bertcli.owned.sealed import walk
from bertcli.store.journal import JOURNAL, LOCK, NOTE_PARTIAL
from bertcli.store.manifest import MANIFEST


def check_replaceable(folder: Path) -> None:
    """Raise `UserError` where `folder` holds anything but a store of bertcli's, or the rest of one."""
    others = _others(folder)
    if others or not folder.is_dir():
        what = f"a folder with other files in it: {', '.join(others[:5])}" if others else "not a folder"
        raise UserError(f"{folder}: {what}. Name another in corpus.store, or move that elsewhere")
    if os.path.ismount(folder):
        raise UserError(f"{folder}: a disk is mounted there; name a folder in it in corpus.store")


def publish(partial: Path, folder: Path) -> None:
    """Rename a complete store to `folder`; a store of that name is removed.

    Raises `UserError` where something else got that name while the store was built.
    """
    for path in partial.iterdir():
        if NOTE_PARTIAL.fullmatch(path.name):
            path.unlink()
    names = [str(path.relative_to(partial)) for path in walk(partial)]
    write_note(partial, Note("store", {name: [] for name in sorted({*names, NOTE, JOURNAL, LOCK})}))
    if os.path.lexists(folder):
        check_replaceable(folder)
        _remove(folder)
    os.rename(partial, folder)


def _remove(folder: Path) -> None:
    """The manifest first, the note last: what a kill leaves is no store, but is still known as bertcli's."""
    paths = walk(folder)
    for path in sorted(paths, key=lambda path: {MANIFEST: -1, NOTE: 1}.get(path.name, 0)):
        path.unlink()
    for name in sorted({path.parent for path in paths if path.parent != folder}, reverse=True):
        name.rmdir()


def _others(folder: Path) -> list[str]:
    """What in the folder of a store is not bertcli's."""
    if not folder.is_dir():
        return []
    note = read_note(folder, "store")
    listed = note.files if note else {}
    found = [path.relative_to(folder) for path in walk(folder)]
    return [str(name) for name in found if str(name) not in listed or (folder / name).is_symlink()]
