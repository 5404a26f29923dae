"""The files of a corpus -> chunks of text to tokenize, with the ends of documents; also progress displays."""

import hashlib
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from bertcli.config.corpus import CorpusConfig, fits
from bertcli.corpus.documents import read_paragraphs, rules_used
from bertcli.corpus.encodings import mark_note
from bertcli.corpus.files import CorpusFile, by_source, corpus_files
from bertcli.corpus.manifest import FileRecord
from bertcli.corpus.sample import layout_advice
from bertcli.corpus.streams import Progress, check_file_extras, deciding_mark, find_bad_lines
from bertcli.system.errors import UserError
from bertcli.system.files import file_hash
from bertcli.system.terminal import BETWEEN_LINES, Report, raw_stream, working


@contextmanager
def progress_display(
    doing: str, files: Sequence[CorpusFile], report: Report, start: int = 0
) -> Iterator[Progress]:
    """Give the function that counts bytes read from the disk; files before number `start` count as read."""
    sizes = [file.size for file in files]
    done, total, last_line = sum(sizes[:start]), sum(sizes), time.monotonic()

    def advance(num_bytes: int) -> None:
        nonlocal done, last_line
        done += num_bytes
        if bar is not None:
            bar.update(num_bytes)
        elif time.monotonic() - last_line >= BETWEEN_LINES:
            last_line = time.monotonic()
            report(line())

    bar, line = None, lambda: f"{doing}: {done / max(1, total):.0%} of {total / 1e6:,.0f} MB"
    if sys.stderr.isatty():
        bar = tqdm(
            desc=doing,
            total=total,
            initial=done,
            unit="B",
            unit_scale=True,
            leave=False,
            file=raw_stream(sys.stderr),
        )
    with nullcontext() if bar is None else bar, working(line if bar is None else lambda: ""):
        yield advance


def encoding_notes(files: Sequence[CorpusFile], corpus: CorpusConfig) -> Iterator[str]:
    """A line for the user if files have a byte order mark that overrides `corpus.encoding`, else none."""
    marks = {
        file.path: deciding_mark(file.path, source.decoding(file.path).encoding)
        for own, source in by_source(files, corpus)
        for file in own
        if source.format != "parquet"
    }
    if found := [(path, mark) for path, mark in marks.items() if mark]:
        more = f", and so are {len(found) - 1:,} other files" if len(found) > 1 else ""
        yield f"{mark_note(*found[0])}{more}"


def corpus_notes(files: Sequence[CorpusFile], corpus: CorpusConfig, report: Report) -> Iterator[str]:
    """Lines for the user before the text is read: on encodings, layout, the rules of splitting, and bytes
    that `corpus.bad_bytes` replaces, or leaves out with their lines.

    All files are read, unless it refuses such bytes; `report` then takes lines on how far this is.
    """
    yield from encoding_notes(files, corpus)
    yield from (f"warning: {advice.problem}; {advice.mend}" for advice in layout_advice(files, corpus))
    sources = [source for _, source in by_source(files, corpus)]
    for language in dict.fromkeys(source.language for source in sources if source.format != "sentences"):
        if (rules := rules_used(language)) != language:
            yield f"sentences: there are no rules for {language}; those for {rules} are used"
    texts = [file for file in files if sources[file.source].format != "parquet"]
    if corpus.bad_bytes == "refuse" or not texts:
        return
    with progress_display("looking for bad bytes", texts, report) as advance:
        decodings = [(file.path, sources[file.source].decoding(file.path)) for file in texts]
        found = [(find_bad_lines(path, decoding, advance), path, decoding) for path, decoding in decodings]
    for bad, path, decoding in found:
        yield from bad.notes(path, decoding)


def find_corpus(corpus: CorpusConfig, outputs: Collection[Path] = ()) -> list[CorpusFile]:
    """The files of the corpus, without `outputs` (`corpus.matching.output_paths`), which it may contain.

    Raises `UserError` if a file is missing, if a package that its format needs is missing, or if a name in
    `corpus.encodings` fits no file.
    """
    files = corpus_files(corpus, outputs)
    for name in corpus.encodings:
        if not any(fits(file.path, name) for file in files):
            raise UserError(f"corpus.encodings: {name}: no file of the corpus has this name or fits it")
    for own, source in by_source(files, corpus):
        one_of_each_kind = {file.path.suffix: file for file in own}
        for file in one_of_each_kind.values():
            check_file_extras(file.path, source.format == "parquet")
    return files


CHUNK_CHARACTERS = 1 << 18
"""Characters of text in a chunk: few enough that the encodings of all chunks in flight fit in memory."""


@dataclass(frozen=True)
class Place:
    """The part of a corpus that has been read: all files before number `file`, and `documents` of it."""

    file: int = 0
    documents: int = 0


@dataclass(frozen=True)
class DocumentEnd:
    """Facts about a document that are known once it has been read to its end.

    Attributes:
        content_hash: a 64-bit hash of the paragraphs, which decides the side. Equal text has an equal hash in
            any file.
    """

    content_hash: int
    num_bytes: int
    after: Place


@dataclass(frozen=True)
class Chunk:
    """Consecutive text of one source of a corpus.

    A document may cover many chunks. Piece p of a chunk is the chunk's part of one document: paragraphs
    `starts[p]` to `starts[p + 1]` (or the end). Every piece but the last ends its document. The last piece
    does so if `ends` is as long as `starts`. The first piece begins its document unless the chunk `goes_on`.
    """

    source: int = 0
    goes_on: bool = False
    paragraphs: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[DocumentEnd] = field(default_factory=list)


def stat_file(file: CorpusFile) -> FileRecord:
    """The record of a file with its size and time; the hash is still empty."""
    stat = file.path.stat()
    return FileRecord(file.name, stat.st_size, stat.st_mtime_ns, sha256="")


def read_chunks(
    files: Sequence[CorpusFile],
    corpus: CorpusConfig,
    start: Place,
    hashes: list[str] | None,
    progress: Progress,
) -> Iterator[Chunk]:
    """The text of `files` after `start`; documents before `start` in its file are read and skipped.

    `hashes` gets the SHA-256 of each file that is read to its end; with None, no hash is computed. Raises
    `UserError` if a file cannot be read, if a listed file has no text, or if a file changes meanwhile.
    """
    chunk, size = Chunk(), 0
    for number, file in enumerate(files[start.file :], start=start.file):
        before = stat_file(file)
        skip = start.documents if number == start.file else 0
        if file.source != chunk.source:
            if chunk.starts:
                yield chunk
            chunk, size = Chunk(file.source), 0
        documents, document = 0, _Document()
        for paragraph in read_paragraphs(file.path, corpus.of(file.source), progress):
            if documents < skip:
                documents += paragraph is None
            elif paragraph is None:
                documents += 1
                document.add(chunk.paragraphs[chunk.starts[-1] :])
                chunk.ends.append(document.end(Place(number, documents)))
                document = _Document()
            else:
                if size >= CHUNK_CHARACTERS:
                    if len(chunk.ends) < len(chunk.starts):
                        document.add(chunk.paragraphs[chunk.starts[-1] :])
                    yield chunk
                    chunk, size = Chunk(file.source, goes_on=len(chunk.ends) < len(chunk.starts)), 0
                if len(chunk.starts) == len(chunk.ends):
                    chunk.starts.append(len(chunk.paragraphs))
                chunk.paragraphs.append(paragraph)
                size += len(paragraph)
        if documents == 0 and file.listed:
            raise UserError(f"{file.path}: the file holds no text; give one that does, or leave it out")
        if stat_file(file) != before:
            raise UserError(f"{file.path}: the file changed while it was read; run the command again")
        if hashes is not None:
            hashes.append(file_hash(file.path))
    if chunk.starts:
        yield chunk


class _Document:
    """The hash and size of a document, computed piece by piece."""

    def __init__(self) -> None:
        self._hash, self._num_bytes = hashlib.blake2b(digest_size=8), 0

    def add(self, paragraphs: Sequence[str]) -> None:
        data = "\n".join([*paragraphs, ""]).encode()
        self._hash.update(data)
        self._num_bytes += len(data) - len(paragraphs)

    def end(self, after: Place) -> DocumentEnd:
        return DocumentEnd(int.from_bytes(self._hash.digest()), self._num_bytes, after)
