"""Corpus files -> batches of lines with their places; a file that cannot be read gives a finding."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from bertcli.checks.findings import Finding, bad_bytes_findings
from bertcli.config.decoding import Decoding
from bertcli.config.schema import CorpusConfig
from bertcli.errors import UserError
from bertcli.store.chunks import CHUNK_CHARACTERS, Chunk, DocumentEnd, Place, read_chunks
from bertcli.text.sources import Source
from bertcli.text.streams import Progress, read_lines


class Piece(NamedTuple):
    """The part of one document that a batch holds. `document` counts from 1 in file number `source`."""

    source: int
    document: int
    end: DocumentEnd | None
    """None: the document continues in the next batch."""


@dataclass(frozen=True)
class Batch:
    """Piece p holds `lines` from `starts[p]` to `starts[p + 1]` (or the end).

    A line is a paragraph, or in Google's format a sentence.
    """

    lines: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)


def read_batches(
    sources: Sequence[Source], corpus: CorpusConfig, progress: Progress, findings: list[Finding]
) -> Iterator[Batch]:
    """The text of all files, in order.

    What would stop a run is added to `findings`: bytes that are not in the corpus's encoding, which are
    skipped here, and files that cannot be read to their end.
    """
    batch, size = Batch(), 0
    for encoding in {corpus.encoding, *corpus.encodings.values()}:
        list(read_lines(Path(os.devnull), Decoding(encoding)))  # raises `UserError` for an unknown one
    for number, source in enumerate(sources):
        documents, read = 0, corpus
        try:
            if corpus.format != "parquet":
                found, decoding = bad_bytes_findings(
                    source.path, corpus.decoding(source.path), share=1 / len(sources)
                )
                findings.extend(found)
                read = corpus.model_copy(update={"bad_bytes": decoding.bad_bytes})
            for chunk in read_chunks([source], read, Place(), hashes=None, progress=progress):
                documents = _append(batch, chunk, number, documents=documents)
                size += sum(map(len, chunk.paragraphs))
                if size >= CHUNK_CHARACTERS // 2:
                    yield batch
                    batch, size = Batch(), 0
        except UserError as error:
            findings.append(Finding(True, str(error), share=1 / len(sources)))
    if batch.pieces:
        yield batch


def _append(batch: Batch, chunk: Chunk, source: int, documents: int) -> int:
    """Append a chunk of a file. `documents` of the file ended before it; returns how many have now."""
    shift = len(batch.lines)
    batch.lines.extend(chunk.paragraphs)
    batch.starts.extend(shift + start for start in chunk.starts)
    for number in range(len(chunk.starts)):
        end = chunk.ends[number] if number < len(chunk.ends) else None
        batch.pieces.append(Piece(source, documents + number + 1, end))
    return documents + len(chunk.ends)
