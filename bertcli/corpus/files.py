"""The names under `files` in a config -> the files themselves, in a fixed order."""

import difflib
import glob
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from bertcli.config.corpus import CorpusConfig
from bertcli.folders.mark import read_note
from bertcli.folders.run_layout import FILES, FOLDERS
from bertcli.samples import SAMPLES
from bertcli.system.errors import UserError
from bertcli.system.files import looked_in, refuse_special
from bertcli.system.remote import InputPath, find
from bertcli.system.urls import Unreachable, check_url, is_remote


@dataclass(frozen=True)
class CorpusFile:
    """One file of a corpus.

    Attributes:
        name: the name in manifests: the absolute path, the URL, or `sample:NAME`, the same on any machine.
        listed: true if the config names the file itself, not a folder or a pattern; the file must then hold
            text.
        source: the number of its source in `corpus.sources`; 0 if there is only one.
    """

    name: str
    path: InputPath
    listed: bool
    source: int = 0

    @property
    def size(self) -> int:
        """The bytes, compressed if the file is."""
        return self.path.stat().st_size


def corpus_files(
    corpus: CorpusConfig, outputs: Collection[Path] = (), missing_ok: bool = False
) -> list[CorpusFile]:
    """The files of a corpus, one source after the other; arguments and errors as for `list_files`.

    Raises `UserError` also for a file that is in two sources.
    """
    found: dict[str, CorpusFile] = {}
    for number, source in enumerate(corpus.alone):
        key = f"corpus.sources.{number}.files: " if corpus.sources else "corpus.files: "
        for file in list_files(source.files, outputs, key=key, missing_ok=missing_ok):
            if file.name in found:
                other = corpus.source_names[found[file.name].source]
                raise UserError(
                    f"{key}{file.path} is also in the source {other}; a file belongs to one source, so leave "
                    "it out of one of them"
                )
            found[file.name] = replace(file, source=number)
    return list(found.values())


def by_source(
    files: Sequence[CorpusFile], corpus: CorpusConfig
) -> Iterator[tuple[list[CorpusFile], CorpusConfig]]:
    """The files of each source, and the source as a corpus of its own."""
    for number, source in enumerate(corpus.alone):
        yield [file for file in files if file.source == number], source


def list_files(
    names: Sequence[str],
    outputs: Collection[Path] = (),
    key: str = "corpus.files: ",
    missing_ok: bool = False,
) -> list[CorpusFile]:
    """The files that `names` (paths, URLs, folders, globs, samples) mean, each once, in the given order.

    Folders are read recursively, sorted by path; hidden files and folders are skipped. A folder that several
    links reach, or that links to itself, is read once. Files that bertcli writes are not part of a corpus:
    folders and globs leave out runs, stores, and `outputs` (real paths).

    Args:
        key: the config's key, as the start of messages.
        missing_ok: a name may give no file, because the corpus may be gone.

    Raises:
        UserError: a name gives no file; the path of a file is not UTF-8.
    """
    found: dict[str, CorpusFile] = {}
    for name in names:
        try:
            files = list(_expand(name, outputs))
            nothing = "" if files else _nothing_found(name)
        except Unreachable as error:
            files, nothing = [], str(error)
        if nothing and not missing_ok:
            raise UserError(f"{key}{nothing}")
        for file in files:
            found.setdefault(file.name, file)
    return list(found.values())


def _expand(name: str, outputs: Collection[Path]) -> Iterator[CorpusFile]:
    if is_remote(check_url(name)):
        yield from (CorpusFile(file.url, file, listed=file.url == name) for file in find(name))
        return
    path = Path(name).expanduser()
    refuse_special(path)
    found: Iterable[Path] = []
    if path.is_file():
        yield CorpusFile(in_utf8(str(path.resolve())), path, listed=True)
    elif path.is_dir():
        found = [path]
    elif name in SAMPLES:
        yield CorpusFile(f"sample:{name}", SAMPLES[name], listed=True)
    elif glob.has_magic(name):
        matches = map(Path, sorted(_matches(path, outputs)))
        found = (match for match in matches if not _is_in_output(match, path, outputs))
    for top in found:
        refuse_special(top)
        inside = (path for path in _below(top, outputs) if path.is_file())
        for file in inside if top.is_dir() else [top]:
            yield CorpusFile(in_utf8(str(file.resolve())), file, listed=False)


def in_utf8(name: str) -> str:
    """The path `name`. Raises `UserError` if it is not UTF-8, so that no file could name it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise UserError(
            f"corpus.files: {name!a}: this path is not UTF-8, so no manifest can name it; rename the file or "
            "folder, or leave it out"
        ) from None
    return name


def _matches(pattern: Path, outputs: Collection[Path]) -> set[str]:
    """The matches of `glob.glob`, found in another way: its ** hardly ever ends if a link leads back up."""
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


def _below(folder: Path, outputs: Collection[Path]) -> Iterator[Path]:
    """A folder and everything in it that is not hidden, sorted; a folder with several links comes once."""
    seen: set[tuple[int, int]] = set()
    waiting = [folder]  # no recursion: folders may be nested a thousand deep
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
    """True if bertcli wrote the path or will write it: a run or a store, or a part of one."""
    # Resolving a path looks at all folders above it, which takes long for each path in a deep folder.
    may_be = path.is_symlink() or any(path.name == output.name for output in outputs)
    if path.is_dir():
        return read_note(path) is not None or (may_be and path.resolve() in outputs) or _is_part_of_run(path)
    return path.name in FILES and ((may_be and path.resolve() in outputs) or _is_part_of_run(path))


def _is_part_of_run(path: Path) -> bool:
    return path.name in (*FILES, *FOLDERS) and read_note(path.parent, "run") is not None


def _is_in_output(path: Path, pattern: Path, outputs: Collection[Path]) -> bool:
    """True if `_is_output` is true for a path that matches a pattern, or for a matched folder above it."""
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


START_BYTES = 512
"""The first bytes that identify every kind; the header of a tar archive is the longest."""

_UNPACK = "unpack it first, and name the files in it"
_DECOMPRESS = "decompress it first"
_NAME_IT = "decompress it first, or give it a name that ends in "
_EXPORT = "save or export it as plain text first"
_LEAVE_OUT = "leave it out"
_BINARY = rb"(?s:.{0,28}?)[\x00-\x08\x0e-\x1a]"
"""A byte near the start that no text contains, since a text may begin with the letters of a magic number."""


class Kind(NamedTuple):
    """A kind of file that is not plain text.

    Attributes:
        name: the name with its article, as in "FILE is a PDF".
        mend: the advice for the user.
    """

    name: str
    mend: str


_MAGIC = [
    (re.compile(pattern), Kind(name, mend))
    for pattern, name, mend in (
        (rb"(?s)PK\x03\x04.{26}mimetypeapplication/epub", "an EPUB book", _EXPORT),
        (
            rb"(?s)PK\x03\x04.{26}(\[Content_Types\]\.xml|mimetypeapplication/vnd\.oasis)",
            "an office document",
            _EXPORT,
        ),
        (rb"PK(\x03\x04|\x05\x06|\x07\x08)", "a ZIP archive", _UNPACK),
        (rb"\x1f\x8b[\x08]", "compressed with gzip", _NAME_IT + ".gz"),
        (rb"\x28\xb5\x2f\xfd", "compressed with Zstandard", _NAME_IT + ".zst"),
        (rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", "compressed with bzip2", _DECOMPRESS),
        (rb"\xfd7zXZ\x00", "compressed with xz", _DECOMPRESS),
        (rb"\x5d\x00\x00[^\x00]", "compressed with LZMA", _DECOMPRESS),
        (rb"LZIP\x01", "compressed with lzip", _DECOMPRESS),
        (rb"\x04\x22\x4d\x18", "compressed with LZ4", _DECOMPRESS),
        (rb"\x1f[\x9d\xa0]", "compressed with compress (.Z)", _DECOMPRESS),
        (rb"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
        (rb"Rar!\x1a\x07", "a RAR archive", _UNPACK),
        (rb"MSCF\x00\x00\x00\x00", "a cabinet archive", _UNPACK),
        (rb"!<arch>\n", "an ar archive", _UNPACK),
        (rb"(070701|070702|070707)[0-9A-Fa-f]{60}", "a cpio archive", _UNPACK),
        (rb"%PDF-[0-9]", "a PDF", "extract its text first, for example with pdftotext"),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an office document", _EXPORT),
        (rb"\{\\rtf[0-9]", "an RTF document", _EXPORT),
        (rb"%!PS-Adobe", "a PostScript file", "extract its text first, for example with ps2ascii"),
        (rb"AT&TFORM", "a DjVu document", "extract its text first, for example with djvutxt"),
        (rb"PAR1" + _BINARY, "a Parquet file", "in a corpus, set corpus.format: parquet"),
        (rb"ARROW1\x00\x00", "an Arrow file", "write its text to Parquet or JSON lines first"),
        (rb"SQLite format 3\x00", "an SQLite database", "write its text to JSON lines first"),
        (rb"\x89HDF\r\n\x1a\n", "an HDF5 file", "write its text to JSON lines first"),
        (rb"\x93NUMPY", "a NumPy array", _LEAVE_OUT),
        (rb"\x80[\x02-\x05](\x95|\}|c|\]|\()", "a Python pickle", _LEAVE_OUT),
        (rb"\x89PNG\r\n\x1a\n", "a PNG picture", _LEAVE_OUT),
        (rb"\xff\xd8\xff", "a JPEG picture", _LEAVE_OUT),
        (rb"GIF8[79]a" + _BINARY, "a GIF picture", _LEAVE_OUT),
        (rb"(II\*\x00|MM\x00\*)", "a TIFF picture", _LEAVE_OUT),
        (rb"(?s)RIFF.{4}WEBP", "a WebP picture", _LEAVE_OUT),
        (rb"(?s)(RIFF.{4}(WAVE|AVI )|\x00\x00.{2}ftyp|ID3[\x02-\x04]|OggS\x00|fLaC\x00)",
         "a recording", _LEAVE_OUT),
        (rb"\x7fELF", "a program", _LEAVE_OUT),
        (rb"MZ" + _BINARY, "a program", _LEAVE_OUT),
    )
]  # fmt: skip
_TAR = Kind("a tar archive", _UNPACK + ": tar -xf")


def describe_kind(start: bytes) -> Kind | None:
    """The kind of a file with these first bytes if it is known not to be text, else None.

    Args:
        start: at least `START_BYTES` bytes, or the complete file; a .gz or .zst is decompressed first.
    """
    for pattern, kind in _MAGIC:
        if pattern.match(start):
            return kind
    return _TAR if _is_tar_header(start[:512]) else None


def _is_tar_header(header: bytes) -> bool:
    """True if the bytes are a header of a tar archive, old or new, which holds their sum in octal."""
    field = header[148:156].strip(b"\0 ")
    if len(header) < 512 or not re.fullmatch(rb"[0-7]{1,7}", field):
        return False
    return sum(header) - sum(header[148:156]) + 8 * ord(" ") == int(field, 8)
