"""Corpus files -> chunks of text to tokenize, with the end of each document marked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bertcli.config.schema import CorpusConfig
from bertcli.errors import UserError
from bertcli.files import file_hash
from bertcli.store.manifest import SourceRecord
from bertcli.text.corpus import read_paragraphs
from bertcli.text.sources import Source
from bertcli.text.streams import Progress

CHUNK_CHARACTERS = 1 << 18
"""Of text in a chunk: small enough that the encodings of all chunks in flight fit in memory."""


@dataclass(frozen=True)
class Place:
    """How far a corpus has been read: all files before number `file`, and `documents` of that file."""

    file: int = 0
    documents: int = 0


@dataclass(frozen=True)
class DocumentEnd:
    """What is known about a document once it has been read to its end."""

    content_hash: int
    """64 bits, of the paragraphs; it decides the side. The same text has the same hash in any file."""
    num_bytes: int
    after: Place


@dataclass(frozen=True)
class Chunk:
    """Some text of a corpus, in order.

    A document may cover many chunks. Piece p of a chunk is its part of one document: paragraphs `starts[p]`
    to `starts[p + 1]` (or the end). Every piece but the last ends its document; the last one does so if
    `ends` is as long as `starts`.
    """

    paragraphs: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[DocumentEnd] = field(default_factory=list)


def stat_source(source: Source) -> SourceRecord:
    """Size and time of a file; its hash is still empty."""
    stat = source.path.stat()
    return SourceRecord(source.name, stat.st_size, stat.st_mtime_ns, sha256="")


def read_chunks(
    sources: Sequence[Source],
    corpus: CorpusConfig,
    start: Place,
    hashes: list[str] | None,
    progress: Progress,
) -> Iterator[Chunk]:
    """The text of `sources` after `start`; the documents of that file before `start` are read and skipped.

    `hashes` gets the SHA-256 of each file that is read to its end (None: none is computed). Raises
    `UserError` for what cannot be read, a listed file without text, and a file that changes meanwhile.
    """
    chunk, size = Chunk(), 0
    for number, source in enumerate(sources[start.file :], start=start.file):
        before = stat_source(source)
        skip = start.documents if number == start.file else 0
        documents, document = 0, _Document()
        for paragraph in read_paragraphs(source.path, corpus, progress):
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
                    chunk, size = Chunk(), 0
                if len(chunk.starts) == len(chunk.ends):
                    chunk.starts.append(len(chunk.paragraphs))
                chunk.paragraphs.append(paragraph)
                size += len(paragraph)
        if documents == 0 and source.listed:
            raise UserError(f"{source.path}: the file holds no text; give one that does, or leave it out")
        if stat_source(source) != before:
            raise UserError(f"{source.path}: the file changed while it was read; run the command again")
        if hashes is not None:
            hashes.append(file_hash(source.path))
    if chunk.starts:
        yield chunk


class _Document:
    """Hash and size of a document, computed piece by piece."""

    def __init__(self) -> None:
        self._hash, self._num_bytes = hashlib.blake2b(digest_size=8), 0

    def add(self, paragraphs: Sequence[str]) -> None:
        data = "\n".join([*paragraphs, ""]).encode()
        self._hash.update(data)
        self._num_bytes += len(data) - len(paragraphs)

    def end(self, after: Place) -> DocumentEnd:
        return DocumentEnd(int.from_bytes(self._hash.digest()), self._num_bytes, after)
