"""How much text a corpus has: counted, or of a large one estimated from a part."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertcli.config.schema import CorpusConfig
from bertcli.errors import UserError
from bertcli.text.corpus import count_words, read_paragraphs
from bertcli.text.extent import text_bytes
from bertcli.text.layout import FEW_BLANKS
from bertcli.text.sentences import split_sentences
from bertcli.text.sources import Source
from bertcli.text.wordpiece import unread

COUNTED_BYTES = 64 << 20
"""Of text that is read to count it."""
_SPLIT_DOCUMENTS = 400
"""Documents that are split into sentences."""


@dataclass(frozen=True)
class Amount:
    """The text of a corpus.

    Attributes:
        text_bytes: of UTF-8, without blank lines.
        words: between white space; 0 in a script without blanks.
        is_exact: all of it was read.
        one_sentence: share of the documents that have a single sentence.
        unread: share of the characters that are in words too long for a WordPiece.
    """

    files: int
    text_bytes: float
    documents: float
    words: float
    is_exact: bool
    one_sentence: float
    unread: float = 0.0

    def line(self) -> str:
        """In words."""
        about = "" if self.is_exact else "about "
        words = f", {about}{self.words:,.0f} words" if self.words else ""
        files, documents = _number(self.files, "file"), _number(round(self.documents), "document")
        return f"{files}, {about}{self.text_bytes / 1e6:,.1f} MB of text, {about}{documents}{words}"


def measure_amount(sources: Sequence[Source], corpus: CorpusConfig) -> Amount:
    """Read the text, of a large corpus about `COUNTED_BYTES`, of evenly chosen files.

    Raises `UserError` for files without text, and what cannot be read.
    """
    size = text_bytes(sources)
    is_exact = size < 2 * COUNTED_BYTES
    chosen = sources if is_exact else sources[:: min(len(sources), math.ceil(size / COUNTED_BYTES))]
    limit = math.inf if is_exact else 2 * COUNTED_BYTES / len(chosen)
    tally, on_disk = _Tally(), [0]

    def advance(read: int) -> None:
        on_disk[0] += read

    for source in chosen:
        own = 0
        for paragraph in read_paragraphs(source.path, corpus, advance):
            if paragraph is None:
                tally.end_document()
                continue
            own += tally.add(paragraph, corpus)
            if own > limit:
                break
    if not tally.size:
        raise UserError("the files hold no text")
    all_bytes = sum(source.path.stat().st_size for source in sources)
    is_file = corpus.format == "text" and corpus.document == "file"
    scale = 1.0 if is_exact else all_bytes / max(1, min(all_bytes, on_disk[0]))
    return Amount(
        len(sources),
        text_bytes=scale * tally.size,
        documents=len(sources) if is_file and not is_exact else scale * max(1, tally.documents),
        words=scale * tally.words if tally.blanks >= FEW_BLANKS * tally.characters else 0,
        is_exact=is_exact,
        one_sentence=tally.single / max(1, min(tally.documents, _SPLIT_DOCUMENTS)),
        unread=tally.unread / max(1, tally.characters),
    )


class _Tally:
    """Counts of text, and the share of documents of one sentence among the first."""

    def __init__(self) -> None:
        self.size = self.documents = self.words = self.blanks = self.characters = self.single = 0
        self.unread = self._sentences = 0

    def add(self, paragraph: str, corpus: CorpusConfig) -> int:
        """Count a paragraph; returns its bytes."""
        size = len(paragraph.encode()) + 1
        self.size += size
        self.words += count_words([paragraph])
        self.blanks += paragraph.count(" ")
        self.characters += len(paragraph)
        self.unread += unread(paragraph)
        if self.documents < _SPLIT_DOCUMENTS and self._sentences < 2:
            is_one = corpus.format == "sentences"
            self._sentences += 1 if is_one else len(split_sentences(paragraph, corpus.language))
        return size

    def end_document(self) -> None:
        """Count a document."""
        self.single += self.documents < _SPLIT_DOCUMENTS and self._sentences == 1
        self.documents += 1
        self._sentences = 0


def write_sample(sources: Sequence[Source], corpus: CorpusConfig, num_bytes: float, path: Path) -> int:
    """Write about `num_bytes` of the text, evenly from the files, as a text file whose blank lines end
    documents; returns the bytes."""
    written = 0
    with open(path, "w", encoding="utf-8") as file:
        for line in _sample(sources, corpus, num_bytes / len(sources)):
            file.write(f"{line}\n")
            written += len(line.encode()) + 1
    return written


def _sample(sources: Sequence[Source], corpus: CorpusConfig, of_each: float) -> Iterator[str]:
    for source in sources:
        left = of_each
        for paragraph in read_paragraphs(source.path, corpus):
            yield paragraph or ""
            left -= len((paragraph or "").encode()) + 1
            if left <= 0:
                break
        yield ""


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
