"""Corpus files -> batches of lines to examine, each with its place; what cannot be read is noted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bertcli.checks.findings import Finding
from bertcli.checks.wrong_bytes import WrongBytes, noting_encoding
from bertcli.config.schema import CorpusConfig
from bertcli.errors import UserError
from bertcli.store.chunks import CHUNK_CHARACTERS, Chunk, DocumentEnd, Place, read_chunks
from bertcli.text.sources import Source
from bertcli.text.streams import Progress


class Piece(NamedTuple):
    """What a batch holds of one document: `document`, from 1, of file number `source`."""

    source: int
    document: int
    end: DocumentEnd | None
    """None: the document goes on in the next batch."""


@dataclass(frozen=True)
class Batch:
    """Piece p holds `lines` from `starts[p]` to `starts[p + 1]` (or the end).

    A line is what the reader gives: a paragraph, or in Google's format a sentence.
    """

    lines: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)


def read_batches(
    sources: Sequence[Source], corpus: CorpusConfig, progress: Progress, findings: list[Finding]
) -> Iterator[Batch]:
    """The text of all files, in order.

    `findings` grows by what would stop a run: bytes that are not in the corpus's encoding, which are read
    over, and files that cannot be read, or not to their end.
    """
    batch, size = Batch(), 0
    wrong: WrongBytes

    def note(offset: int, data: bytes, reason: str) -> None:
        wrong.note(offset, data, reason)

    with noting_encoding(corpus.encoding, "corpus.encoding", note) as encoding:
        noting = corpus.model_copy(update={"encoding": encoding})
        for number, source in enumerate(sources):
            wrong, documents = WrongBytes("corpus.encoding", corpus.encoding), 0
            try:
                for chunk in read_chunks([source], noting, Place(), hashes=None, progress=progress):
                    documents = _append(batch, chunk, number, documents=documents)
                    size += sum(map(len, chunk.paragraphs))
                    if size >= CHUNK_CHARACTERS // 2:
                        yield batch
                        batch, size = Batch(), 0
            except UserError as error:
                findings.append(Finding(True, str(error), share=1 / len(sources)))
            findings.extend(wrong.findings(source.path, share=1 / len(sources)))
    if batch.pieces:
        yield batch


def _append(batch: Batch, chunk: Chunk, source: int, documents: int) -> int:
    """Put a chunk of a file at the end; how many of the file's documents ended, `documents` before it."""
    shift = len(batch.lines)
    batch.lines.extend(chunk.paragraphs)
    batch.starts.extend(shift + start for start in chunk.starts)
    for number in range(len(chunk.starts)):
        end = chunk.ends[number] if number < len(chunk.ends) else None
        batch.pieces.append(Piece(source, documents + number + 1, end))
    return documents + len(chunk.ends)
