"""Folders that bertcli writes, replaces and removes, sealed by a manifest; files of others stay."""

import contextlib
import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bertcli.folders.mark import MARK, holds_mark, mark, new_marked_folder, sweep_killed
from bertcli.system.errors import UserError
from bertcli.system.files import disk_errors, file_hash, plain_text, sync

Written = TypeVar("Written")
MANIFEST = "manifest.json"
_AT_ONCE = 2
"""Files that are hashed at once: a model's weights and its moments are nearly all of the bytes."""
_TICK_NS = 50_000_000
"""A tick of the file system's clock: a file that changes within it may keep its time."""
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""Errors of reading a missing or damaged manifest."""

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
    """The damage to a sealed folder's manifest or to a listed file, in words; None if there is none.

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
    """The contents of `folder`. All files of a copy, whose name differs from its manifest, are others'.

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
    """True if `folder` is bertcli's, has its own name, and holds all that was written."""
    try:
        name, files = _read(folder)
        own = set(contents(folder).own)
    except _UNREADABLE:
        return False
    return name == folder.name and all(folder / listed in own for listed in files)


def is_renamed(folder: Path) -> bool:
    """True if an intact folder has another name than in its manifest: it is a copy."""
    return _read(folder)[0] != folder.name


def listed_files(folder: Path) -> Sequence[str]:
    """The names in the manifest of `folder`; empty if it is missing or damaged."""
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
    """The text of a manifest, in its only valid form, so that no byte of it can change unnoticed."""
    listed = json.dumps([name, files], indent=1)
    value = {"name": name, "files": files, "blake2b": hashlib.blake2b(listed.encode()).hexdigest()}
    return json.dumps(value, indent=1) + "\n"


def check_new(destination: Path) -> None:
    """Raise `UserError` unless `destination` is an empty folder, or does not exist yet."""
    if os.path.lexists(destination) and (not destination.is_dir() or any(destination.iterdir())):
        raise UserError(f"{destination}: exists already; name a new folder, or an empty one")


def write_new(destination: Path, fill: Callable[[Path], Written]) -> Written:
    """Let `fill` write `destination`, a new or an empty folder, which appears only once it is complete.

    It has no manifest: it is the user's. Returns what `fill` does. Raises `UserError` if `destination` holds
    something, or cannot be written.
    """
    check_new(destination)
    failed = f"{destination}: could not be written"
    with disk_errors(failed, "and try again", "name a folder that can be written"):
        return write_folder(destination.absolute(), fill, sealed=False)


def write_folder(folder: Path, fill: Callable[[Path], Written], sealed: bool = True) -> Written:
    """Let `fill` write into a folder beside `folder`; sync and seal it, and only then rename it to `folder`.

    The files of bertcli in an older folder of that name are replaced, other files there stay. Leftovers of
    killed processes beside it are removed. The files are moved one by one if `folder` is a link to a folder,
    or a mount point. Returns what `fill` does.

    Raises:
        UserError: a file that is not bertcli's has the name of a file to write; nothing has changed.
        OSError: the disk refuses.
    """
    in_place = folder.is_symlink() or os.path.ismount(folder)
    parent, purpose = folder if in_place else folder.parent, f"{folder.name}.partial"
    sweep_killed(parent, purpose)
    partial = new_marked_folder(parent, purpose)
    try:
        result = fill(partial)
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
    return result


def check_replaceable(folder: Path, names: Sequence[str], but: Path | None = None) -> None:
    """Raise `UserError` if something that is not bertcli's has one of `names` in `folder`.

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
    """Remove the files that the manifest of `folder` proves to be bertcli's; return what is left in it.

    The folder itself is removed too, in one step, if nothing is left and `keep` is false. `but`: a folder in
    it that is ignored. Raises `OSError` where the disk refuses.
    """
    if not folder.is_dir():
        return [folder] if os.path.lexists(folder) else []
    found = contents(folder)
    others = [path for path in found.others if not _is_in(path, but)]
    if not (others or keep or folder.is_symlink()):
        if found.own:
            doomed = new_marked_folder(folder.parent, f"{folder.name}.removed")
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
    """Move the manifest first, which proves the others; config.json last, without which it is no model."""
    order = {MANIFEST: -1, "config.json": 1}
    for name in sorted(names, key=lambda name: order.get(str(name), 0)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.rename(partial / name, folder / name)
    shutil.rmtree(partial)


def _is_in(path: Path, folder: Path | None) -> bool:
    return folder is not None and path.is_relative_to(folder)
