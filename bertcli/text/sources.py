"""The `files` of a config -> the files themselves, in a fixed order."""

from __future__ import annotations

import difflib
import glob
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertcli.errors import UserError
from bertcli.files import looked_in, refuse_special
from bertcli.owned.mark import read_note
from bertcli.owned.run_layout import FILES, FOLDERS
from bertcli.samples import SAMPLES


@dataclass(frozen=True)
class Source:
    """One file of a corpus."""

    name: str
    """In manifests: the absolute path, or `sample:NAME`, wherever the package is installed."""
    path: Path
    listed: bool
    """Named by itself, not found in a folder or by a glob: it is an error if it holds no text."""


def find_sources(
    names: Sequence[str], outputs: Collection[Path] = (), key: str = "corpus.files: "
) -> list[Source]:
    """The files that `names` (paths, folders, globs, samples) mean, each once, in the order given.

    Folders are read recursively, sorted by path; hidden files and folders are skipped. A folder that links
    reach twice, or that links to itself, is read once. Files that bertcli writes are no corpus: folders and
    globs leave out runs, stores, and `outputs` (real paths).

    Args:
        key: the start of messages: the config's key.

    Raises:
        UserError: a name that gives no file; a file whose path is not UTF-8.
    """
    found: dict[str, Source] = {}
    for name in names:
        sources = list(_expand(name, outputs))
        if not sources:
            raise UserError(f"{key}{_nothing_found(name)}")
        for source in sources:
            found.setdefault(source.name, source)
    return list(found.values())


def find_present(names: Sequence[str], outputs: Collection[Path] = ()) -> list[Source]:
    """As `find_sources`, but a name may give no file: the corpus may be gone."""
    found = (source for name in names for source in _expand(name, outputs))
    return list({source.name: source for source in found}.values())


def _expand(name: str, outputs: Collection[Path]) -> Iterator[Source]:
    path = Path(name).expanduser()
    refuse_special(path)
    if path.is_file():
        yield Source(_full_name(path), path, listed=True)
    elif path.is_dir():
        yield from (_found(file) for file in _walk(path, outputs))
    elif name in SAMPLES:
        yield Source(f"sample:{name}", SAMPLES[name], listed=True)
    elif glob.has_magic(name):
        for file in map(Path, sorted(_matches(path, outputs))):
            if not _is_in_output(file, path, outputs):
                refuse_special(file)
                yield from (_found(inner) for inner in (_walk(file, outputs) if file.is_dir() else [file]))


def _found(path: Path) -> Source:
    return Source(_full_name(path), path, listed=False)


def _full_name(path: Path) -> str:
    name = str(path.resolve())
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UserError(
            f"corpus.files: {name!a}: this path is not UTF-8, so no manifest can name it; rename the file or "
            "folder, or leave it out"
        ) from None
    return name


def _matches(pattern: Path, outputs: Collection[Path]) -> set[str]:
    """As `glob.glob`, whose ** never ends in practice where a link leads back up."""
    if "**" not in pattern.parts:
        return set(glob.glob(str(pattern)))
    cut = pattern.parts.index("**")
    tops = glob.glob(str(Path(*pattern.parts[:cut])))
    folders = (path for top in tops for path in _below(Path(top), outputs) if path.is_dir())
    return {
        match
        for folder in folders
        for match in _matches(Path(glob.escape(str(folder)), *pattern.parts[cut + 1 :]), outputs)
    }


def _walk(folder: Path, outputs: Collection[Path]) -> Iterator[Path]:
    return (path for path in _below(folder, outputs) if path.is_file())


def _below(folder: Path, outputs: Collection[Path]) -> Iterator[Path]:
    """A folder and all in it that is not hidden, sorted; a folder that links reach twice comes once."""
    seen: set[tuple[int, int]] = set()
    waiting = [folder]  # no recursion: folders may lie a thousand deep
    while waiting:
        path = waiting.pop()
        if path.is_dir():
            status = path.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            inside = sorted(path.iterdir(), reverse=True)
            waiting += [
                each for each in inside if not each.name.startswith(".") and not _is_output(each, outputs)
            ]
        yield path


def _is_output(path: Path, outputs: Collection[Path]) -> bool:
    """Whether bertcli wrote or will write it: a run or a store, or a part of one."""
    # To resolve each path of a deep folder would look at all folders above it again.
    may_be = path.is_symlink() or any(path.name == output.name for output in outputs)
    if path.is_dir():
        return read_note(path) is not None or (may_be and path.resolve() in outputs) or _is_part_of_run(path)
    return path.name in FILES and ((may_be and path.resolve() in outputs) or _is_part_of_run(path))


def _is_part_of_run(path: Path) -> bool:
    return path.name in (*FILES, *FOLDERS) and read_note(path.parent, "run") is not None


def _is_in_output(path: Path, pattern: Path, outputs: Collection[Path]) -> bool:
    """As `_is_output`, for a path that matches a pattern, and for the folders that hold it."""
    top = next(number for number, part in enumerate(pattern.parts) if glob.has_magic(part))
    below = len(path.parts) - top
    return any(_is_output(each, outputs) for each in [path, *path.parents][:below])


def _nothing_found(name: str) -> str:
    path = Path(name).expanduser()
    if path.is_dir():
        return f"{name}: the folder holds no files (hidden ones are skipped)"
    if glob.has_magic(name):
        return (
            f"{name}: no file matches this pattern{looked_in(path)}; in a pattern, ** means "
            "folders of any depth"
        )
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, [*names, *SAMPLES], n=1)
    if near:
        nearest = near[0] if near[0] in SAMPLES and near[0] not in names else str(path.parent / near[0])
        return f"{name}: no such file or folder{looked_in(path)}; did you mean {nearest}?"
    where = looked_in(path) + ("" if path.parent.is_dir() else f"; there is no folder {path.parent} either")
    return f"{name}: no such file or folder{where}; bundled samples: {', '.join(SAMPLES)}"
