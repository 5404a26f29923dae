"""The files that a user names: those of one kind, with the beginning of each."""

import glob
import itertools
import shlex
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bertcli.advice.init.kinds import Encoding, Kind, detect_encoding, kind_of_text
from bertcli.corpus.encodings import marked_encoding
from bertcli.corpus.files import CorpusFile, describe_kind, list_files
from bertcli.corpus.streams import BLOCK, read_blocks, silent
from bertcli.samples import LABELED, SAMPLES
from bertcli.system.errors import UserError
from bertcli.system.remote import InputPath
from bertcli.system.urls import is_remote
from bertcli.tasks.brat import holds_brat, is_brat

_MOST_FILES = 200
"""Largest number of files that are examined, evenly chosen; of rare suffixes, as many more."""
_MOST_BYTES = 16 << 20
"""Largest number of bytes read to find the encoding of one file; for all files together, eight times more."""
_LINES, _CHARACTERS = 4000, 4_000_000
"""Largest numbers of lines and characters that are kept of the beginning of a file."""
_LISTED = 50
"""Largest number of files that a config names one by one."""
_NAMED = 3
"""Largest number of files that a message names."""
_COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True)
class Seen:
    """The beginning of a file.

    Attributes:
        encoding: the encoding that a config must name; UTF-8 for a file with a byte order mark, which readers
            obey.
        lines: the first lines, without line ends; empty for a Parquet file.
    """

    file: CorpusFile
    kind: Kind
    encoding: Encoding
    lines: tuple[str, ...] = ()

    @property
    def path(self) -> InputPath:
        """The path of the file."""
        return self.file.path

    @property
    def is_ascii(self) -> bool:
        """True if every encoding gives the same text."""
        return not self.encoding.proof and all(line.isascii() for line in self.lines)


@dataclass(frozen=True)
class Found:
    """Files of one kind.

    Attributes:
        names: paths, folders, globs or samples, as a config names the files.
        files: all files.
        seen: the examined files: all, or some of each suffix.
        left_out: lines about other files there.
    """

    names: list[str]
    files: list[CorpusFile]
    seen: list[Seen]
    left_out: list[str]

    @property
    def kind(self) -> Kind:
        """The kind of all files."""
        return self.seen[0].kind

    @property
    def encoding(self) -> Encoding:
        """The encoding of most files; plain ASCII fits any encoding."""
        if any(each.encoding.name == "utf-8" and not each.is_ascii for each in self.seen):
            return Encoding("utf-8")
        others = [each.encoding for each in self.seen if each.encoding.name != "utf-8"]
        common = Counter(each.name for each in others).most_common(1)
        return next((each for each in others if each.name == common[0][0]), Encoding("utf-8"))

    @property
    def others(self) -> dict[str, str]:
        """Path -> encoding, for files in other encodings than `encoding`."""
        most = self.encoding.name
        others = [each for each in self.seen if not each.is_ascii and each.encoding.name != most]
        return {str(each.path): each.encoding.name for each in others}


def suffix_of(path: InputPath) -> str:
    """The suffix, without the suffix of a compression."""
    return (Path(path.stem) if path.suffix in _COMPRESSED else path).suffix.lower()


def full_suffix(path: InputPath) -> str:
    """The suffix, followed by the suffix of a compression: `.txt.gz`."""
    return f"{Path(path.stem).suffix}{path.suffix}" if path.suffix in _COMPRESSED else path.suffix


def find_files(names: Sequence[str], output: Path) -> Found:
    """The files to read; in a folder with several kinds, those of the kind with the most bytes.

    Args:
        output: the config that will be written; a folder must not give it as text.

    Raises:
        UserError: the names give no file, or the files are empty or hold no text.
    """
    if all(map(_is_brat, names)):
        files = [CorpusFile(name, Path(name).expanduser(), listed=True) for name in names]
        return Found(
            list(names), files, [Seen(file, "brat", Encoding("utf-8")) for file in files], left_out=[]
        )
    if len(names) == 1 and names[0] in LABELED and not Path(names[0]).exists():
        files = [CorpusFile(names[0], LABELED[names[0]], listed=True)]
    else:
        files = list_files(names, key="")
    seen, left_out, unwanted = list[Seen](), list[str](), set[str]()
    for file in _looked_at(files):
        try:
            seen.append(_look(file, len(files)))
        except UserError as error:
            left_out.append(str(error))
            unwanted.add(file.name)
    if not seen:
        others = f"; and {len(left_out) - 1:,} more files that cannot be read" if len(left_out) > 1 else ""
        raise UserError(f"{left_out[0]}{others}")
    sizes: Counter[Kind] = Counter()
    for each in seen:
        sizes[each.kind] += each.path.stat().st_size
    kind = sizes.most_common(1)[0][0]
    chosen, others = [each for each in seen if each.kind == kind], [e for e in seen if e.kind != kind]
    left_out += [f"{each.path}: is {KIND_NAMES[each.kind]}" for each in others]
    unwanted |= {each.file.name for each in others}
    if unwanted or _would_read(names, output):
        names, files = _named_alone(names, files, chosen, unwanted=unwanted)
    return Found(list(names), files, chosen, left_out=left_out)


def _is_brat(name: str) -> bool:
    """True for a folder with annotations of brat, or one document."""
    path = Path(name).expanduser()
    return holds_brat(path) or (path.is_file() and is_brat(path))


KIND_NAMES: dict[Kind, str] = {
    "text": "plain text",
    "json-texts": "a list of texts in JSON",
    "jsonl": "JSON objects",
    "parquet": "Parquet",
    "tsv": "a table (TSV)",
    "csv": "a table (CSV)",
    "conll": "CoNLL",
    "brat": "brat's files",
    "squad": "SQuAD JSON",
    "fasttext": "lines of fastText",
    "trec": "lines of TREC",
    "json": "JSON",
}


def _looked_at(files: Sequence[CorpusFile]) -> list[CorpusFile]:
    """Evenly chosen files, and the first file of each suffix that is not among them."""
    chosen = files[:: -(-len(files) // _MOST_FILES)]
    known = {full_suffix(file.path) for file in chosen}
    first = {full_suffix(file.path): file for file in reversed(files)}
    rare = [file for suffix, file in first.items() if suffix not in known]
    return [*chosen, *rare[:_MOST_FILES]]


def _look(file: CorpusFile, number: int) -> Seen:
    """The beginning of a file; one of `number` files gets a share of all bytes that are read.

    Raises `UserError` for a file that holds no text or cannot be read.
    """
    path, limit = file.path, min(_MOST_BYTES, 8 * _MOST_BYTES // min(number, _MOST_FILES))
    blocks: list[bytes] = []
    for block in read_blocks(path, silent, BLOCK):
        blocks.append(block)
        if sum(map(len, blocks)) >= limit:
            break
    data = b"".join(blocks)
    if not data.strip():
        raise UserError(f"{path}: is empty")
    if data.startswith(b"PAR1"):
        return Seen(file, "parquet", Encoding("utf-8"))
    if kind := describe_kind(data):
        raise UserError(f"{path}: is {kind.name}, not text; {kind.mend}")
    try:
        encoding = detect_encoding(data)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    if encoding is None:
        raise UserError(f"{path}: is not text: it has control characters, as programs and pictures do")
    text = data[: 4 * _CHARACTERS].decode(encoding.name, "ignore").removeprefix("\ufeff")[:_CHARACTERS]
    lines = tuple(line.removesuffix("\r") for line in itertools.islice(text.split("\n"), _LINES))
    if marked_encoding(data):
        encoding = encoding._replace(name="utf-8")
    return Seen(file, kind_of_text(lines, suffix_of(path)), encoding, lines=lines)


def check_encodings(seen: Sequence[Seen], most: int = 1) -> None:
    """Raise `UserError` for more than `most` files in several encodings: a config cannot name them."""
    by_name: dict[str, list[Seen]] = defaultdict(list)
    for each in seen:
        if not each.is_ascii:
            by_name[each.encoding.name].append(each)
    if len(by_name) < 2 or sum(map(len, by_name.values())) <= most:
        return
    parts = [f"{len(files):,} in {name} ({_examples(files)})" for name, files in by_name.items()]
    name, files = min(by_name.items(), key=lambda item: (item[0] == "utf-8", len(item[1])))
    path = files[0].path
    copy = f"iconv -f {name} -t utf-8 {shlex.quote(str(path))} > {shlex.quote(f'{path.name}.utf8')}"
    raise UserError(
        f"the files are in several encodings: {'; '.join(parts)}. Convert files to UTF-8, for example: {copy}"
    )


def _examples(seen: Sequence[Seen]) -> str:
    return ", ".join(each.path.name for each in seen[:_NAMED]) + (", ..." if len(seen) > _NAMED else "")


def _would_read(names: Sequence[str], output: Path) -> bool:
    """True if a folder among the names holds the config that will be written."""
    folders = [Path(name).expanduser().resolve() for name in names if name not in SAMPLES]
    return any(folder.is_dir() and output.resolve().is_relative_to(folder) for folder in folders)


def _named_alone(
    names: Sequence[str], files: Sequence[CorpusFile], chosen: Sequence[Seen], unwanted: set[str]
) -> tuple[list[str], list[CorpusFile]]:
    """Names that give files like the chosen ones and no unwanted file: globs by suffix, else each file."""
    patterns = sorted({f"*{full_suffix(each.path)}" for each in chosen})
    alone = [str(each.file.path) for each in chosen if each.file.listed]
    folders = [name for name in names if _is_folder(name, files)]
    globs = [
        f"{name.rstrip('/')}/**/{pattern}" if is_remote(name) else str(Path(name) / "**" / pattern)
        for name in folders
        for pattern in patterns
    ]
    given = [*alone, *(pattern for pattern in globs if _gives_any(pattern))]
    if "*" not in patterns and len(given) > len(alone):
        found = list_files(given, key="")
        if not unwanted & {file.name for file in found}:
            return given, found
    wanted = {each.file.name for each in chosen}
    if len(wanted) > _LISTED:
        raise UserError(
            f"{', '.join(names)}: holds files of several kinds; give a pattern that names the texts alone, "
            "such as 'texts/**/*.txt'"
        )
    own = [file for file in files if file.name in wanted]
    return [str(file.path) for file in own], own


def _is_folder(name: str, files: Sequence[CorpusFile]) -> bool:
    """True for a folder, here or elsewhere, but not for a pattern or one of the files."""
    if is_remote(name):
        return not glob.has_magic(name) and all(name != str(file.path) for file in files)
    return Path(name).expanduser().is_dir()


def _gives_any(pattern: str) -> bool:
    try:
        return bool(list_files([pattern], key=""))
    except UserError:
        return False
