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

    A folder is read to its depths, sorted by path; hidden files and folders are skipped. Raises
    `UserError` for a name that stands for no file.
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
        yield Source(str(path.resolve()), path, listed=True)
    elif path.is_dir():
        yield from (_found(file) for file in _walk(path))
    elif name in SAMPLES:
        yield Source(f"sample:{name}", SAMPLES[name], listed=True)
    elif glob.has_magic(name):
        for match in sorted(glob.glob(str(path), recursive=True)):
            file = Path(match)
            yield from (_found(inner) for inner in (_walk(file) if file.is_dir() else [file]))


def _found(path: Path) -> Source:
    return Source(str(path.resolve()), path, listed=False)


def _walk(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            yield from _walk(path)
        elif path.is_file():
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
