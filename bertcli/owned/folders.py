"""Folders that bertcli writes, replaces and removes; files of others in them stay in their place."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from bertcli.errors import UserError
from bertcli.files import sync
from bertcli.owned.mark import MARK, begin_folder, mark, sweep_killed
from bertcli.owned.sealed import MANIFEST, contents, seal, walk


def write_folder(folder: Path, fill: Callable[[Path], None], sealed: bool = True) -> None:
    """Let `fill` write into a folder beside `folder`; sync and seal it, and only then rename it to `folder`.

    The files of bertcli in an older folder of that name are replaced, other files there stay; what killed
    processes left beside it is removed. If `folder` is a link to a folder, or a mount point, the files are
    moved into it one by one.

    Raises:
        UserError: a file that is not bertcli's has the name of a file to write; nothing has changed.
        OSError: the disk refuses.
    """
    in_place = folder.is_symlink() or os.path.ismount(folder)
    parent, purpose = folder if in_place else folder.parent, f"{folder.name}.partial"
    sweep_killed(parent, purpose)
    partial = begin_folder(parent, purpose)
    try:
        fill(partial)
        if sealed:
            seal(partial, folder.name)
        for path in sorted(partial.rglob("*")):
            sync(path)
        sync(partial)
        new = [path.relative_to(partial) for path in walk(partial) if path.name != MARK]
        if folder.exists() or folder.is_symlink():
            check_replaceable(folder, [str(name) for name in new], but=partial)
            in_place = bool(remove_own(folder, keep=in_place, but=partial)) or in_place
        if in_place:
            _move_into(partial, folder, new)
        else:
            os.rename(partial, folder)
            (folder / MARK).unlink()
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    sync(folder.parent)


def check_replaceable(folder: Path, names: Sequence[str], but: Path | None = None) -> None:
    """Raise `UserError` where something that is not bertcli's has one of `names` in `folder`.

    `but`: a folder in it that is ignored.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: is not a folder, and not bertcli's; move it elsewhere")
    others = [path.relative_to(folder) for path in contents(folder).others if not _is_in(path, but)]
    needed = {Path(name) for name in names}
    needed |= {parent for name in needed for parent in name.parents}
    files = set(map(Path, names))
    taken = [str(path) for path in others if path in needed or files.intersection(path.parents)]
    if taken:
        raise UserError(
            f"{folder}: {', '.join(taken[:5])} {'is' if len(taken) == 1 else 'are'} not what bertcli wrote "
            "there, and bertcli has to write under that name; move it elsewhere, and run the command again"
        )


def remove_own(folder: Path, keep: bool = False, but: Path | None = None) -> list[Path]:
    """Remove the files that the manifest of `folder` proves to be bertcli's; returns what is left in it.

    If nothing is left, the folder is removed as well, in one step, unless `keep`. `but`: a folder in it that
    is ignored. Raises `OSError` where the disk refuses.
    """
    if not folder.is_dir():
        return [folder] if os.path.lexists(folder) else []
    found = contents(folder)
    others = [path for path in found.others if not _is_in(path, but)]
    if not (others or keep or folder.is_symlink()):
        if found.own:
            doomed = begin_folder(folder.parent, f"{folder.name}.removed")
            mark(folder, doomed.name)
            (doomed / MARK).unlink()
            os.rename(folder, doomed)
            shutil.rmtree(doomed)
        return []
    # A kill in between leaves a manifest that still proves the rest, but no config.json, so no model.
    order = {"config.json": -1, MANIFEST: 1}
    for path in sorted(found.own, key=lambda path: order.get(str(path.relative_to(folder)), 0)):
        path.unlink()
    inner = {parent for path in found.own for parent in path.relative_to(folder).parents} - {Path()}
    for name in sorted(inner, reverse=True):
        with contextlib.suppress(OSError):
            (folder / name).rmdir()
    return others


def _move_into(partial: Path, folder: Path, names: Sequence[Path]) -> None:
    """The manifest first, which proves the others; config.json last, without which it is no model."""
    order = {MANIFEST: -1, "config.json": 1}
    for name in sorted(names, key=lambda name: order.get(str(name), 0)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.rename(partial / name, folder / name)
    shutil.rmtree(partial)


def _is_in(path: Path, folder: Path | None) -> bool:
    return folder is not None and path.is_relative_to(folder)
