"""What a config calls files -> the files themselves, in a fixed order."""

from __future__ import annotations

import difflib
import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertcli.errors import UserError
from bertcli.files import looked_in
from bertcli.samples import SAMPLES


@dataclass(frozen=True)
class Source:
    """One file of a corpus."""

    name: str
    """What a manifest calls it: the absolute path, or `sample:NAME`, wherever the package is installed."""
    path: Path
    listed: bool
    """Named one by one, not found in a folder or by a glob: it is an error if it holds no text."""


def find_sources(names: Sequence[str]) -> list[Source]:
    """The files that `names` (paths, folders, globs, samples) stand for, each once, in the order given.

    A folder is read to its depths, sorted by path; hidden files and folders are skipped, and a folder that
    links lead to twice, or to itself, is read once. Raises `UserError` for a name that stands for no file,
    and for a file whose path is not UTF-8.
    """
    found: dict[str, Source] = {}
    for name in names:
        sources = list(_expand(name))
        if not sources:
            raise UserError(_nothing_found(name))
        for source in sources:
            found.setdefault(source.name, source)
    return list(found.values())


def find_present(names: Sequence[str]) -> list[Source]:
    """As `find_sources`, but a name that stands for no file gives none: the corpus may be gone."""
    found = (source for name in names for source in _expand(name))
    return list({source.name: source for source in found}.values())


def _expand(name: str) -> Iterator[Source]:
    path = Path(name).expanduser()
    if path.is_file():
        yield Source(_full_name(path), path, listed=True)
    elif path.is_dir():
        yield from (_found(file) for file in _walk(path))
    elif name in SAMPLES:
        yield Source(f"sample:{name}", SAMPLES[name], listed=True)
    elif glob.has_magic(name):
        for match in sorted(_matches(path)):
            file = Path(match)
            yield from (_found(inner) for inner in (_walk(file) if file.is_dir() else [file]))


def _found(path: Path) -> Source:
    return Source(_full_name(path), path, listed=False)


def _full_name(path: Path) -> str:
    name = str(path.resolve())
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UserError(
            f"corpus.files: {name!a}: this path is not UTF-8, and a manifest could not name it; rename "
            "the file or folder, or leave it out"
        ) from None
    return name


def _matches(pattern: Path) -> set[str]:
    """As `glob.glob`, whose ** follows links that lead back up until the system stops it: in effect never."""
    if "**" not in pattern.parts:
        return set(glob.glob(str(pattern)))
    cut = pattern.parts.index("**")
    tops = glob.glob(str(Path(*pattern.parts[:cut])))
    folders = (path for top in tops for path in _below(Path(top), set()) if path.is_dir())
    return {
        match
        for folder in folders
        for match in _matches(Path(glob.escape(str(folder)), *pattern.parts[cut + 1 :]))
    }


def _walk(folder: Path) -> Iterator[Path]:
    return (path for path in _below(folder, set()) if path.is_file())


def _below(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path]:
    """A folder and all in it that is not hidden, sorted; a folder that is in `seen` already is left out."""
    stat = folder.stat()
    if (stat.st_dev, stat.st_ino) in seen:
        return
    seen.add((stat.st_dev, stat.st_ino))
    yield folder
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from _below(path, seen)
        else:
            yield path


def _nothing_found(name: str) -> str:
    path = Path(name).expanduser()
    if path.is_dir():
        return f"corpus.files: {name}: the folder holds no files (hidden ones are skipped)"
    if glob.has_magic(name):
        return (
            f"corpus.files: {name}: no file matches this pattern{looked_in(path)}; in it, ** stands for "
            "folders of any depth"
        )
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, [*names, *SAMPLES], n=1)
    if near:
        nearest = near[0] if near[0] in SAMPLES and near[0] not in names else str(path.parent / near[0])
        return f"corpus.files: {name}: no such file or folder{looked_in(path)}; did you mean {nearest}?"
    where = looked_in(path) + ("" if path.parent.is_dir() else f"; there is no folder {path.parent} either")
    return f"corpus.files: {name}: no such file or folder{where}; bundled samples: {', '.join(SAMPLES)}"
