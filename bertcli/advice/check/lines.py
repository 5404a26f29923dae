"""Batches of lines from corpus files, and their examination in workers, with as few imports as possible."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from bertcli.advice.check.findings import Places, bad_bytes_findings, excerpt, failing
from bertcli.config.corpus import CorpusConfig
from bertcli.config.run import with_values
from bertcli.config.section import Decoding
from bertcli.corpus.chunks import CHUNK_CHARACTERS, Chunk, DocumentEnd, Place, read_chunks
from bertcli.corpus.documents import count_words, split_sentences
from bertcli.corpus.files import CorpusFile
from bertcli.corpus.streams import Progress, read_lines
from bertcli.system.errors import Finding

if TYPE_CHECKING:
    from bertcli.tokenizer.word_cache import TokenizedLines


Fault = Literal["mojibake", "control", "long"]

LONG_LINE = 20_000
"""Characters of a long line. Paragraphs of prose are shorter: at most 14,068 in eight classics, 9,940 in 99
novels."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x85]")
"""Control characters except the tab, newlines (the reader removes them), and those found only in mojibake."""

# The bytes 0x80 to 0xBF, decoded as cp1252 and as Latin-1.
_AFTER = "€‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ\x80-\xbf"
_BUT_QUOTES = "".join(c for c in _AFTER[:-3] if c not in "‘’“”–—…") + "\x80-\xbf"
_MOJIBAKE = re.compile(
    "\ufffd"
    f"|[ÂÃ][{_AFTER}]"  # letters and marks of Latin-1: Ã© was é
    f"|[ÄÅ][{_BUT_QUOTES}]"  # Polish, Czech, Turkish; in Swedish a quote may follow
    f"|(?:[ÎÏÐÑØÙ×][{_AFTER}]){{2}}"  # Greek, Cyrillic, Arabic, Hebrew: two letters or more
    f"|â[{_AFTER}]{{2}}"  # punctuation: â€™ was ’
    f"|(?:[ã-é][{_AFTER}]{{2}}){{2}}"  # Chinese, Japanese, Korean, Thai, the scripts of India
    "|ï»¿"
    "|[\x80-\x84\x86-\x9f]"  # cp1252 read as Latin-1: \x92 was ’
)
_SUSPECT = re.compile("[ÂÃÄÅÎÏÐÑØÙ×â-éï\ufffd](?:(?<=\ufffd)|[^\x00-\x7f])")
"""Characters with which mojibake may begin; they are searched first, which is many times faster."""

FAULT_TEXTS: dict[Fault, tuple[str, str]] = {
    "mojibake": (
        "hold mojibake: text decoded by the wrong encoding (Ã© for é), or U+FFFD where a byte was lost",
        "mend the text: bertcli clean CONFIG OUT repairs most of it; or name the encoding of its original",
    ),
    "control": (
        "hold control characters: old Mac line ends (\\r), page breaks (\\x0c), parts of a binary file",
        "replace line ends and page breaks by newlines (tr '\\r\\f' '\\n'); bertcli clean CONFIG OUT "
        "deletes the others",
    ),
    "long": (
        f"are longer than {LONG_LINE:,} characters: tables, data, or text without line ends",
        "leave them out, or break them into paragraphs",
    ),
}
"""Fault -> what is wrong with the lines, and what to do."""


def find_faults(line: str) -> Iterator[tuple[Fault, int]]:
    """Each kind of fault in the line, and the number of the character where it first occurs.

    Mojibake is U+FFFD, which replaces a lost byte, and the patterns of UTF-8 decoded as cp1252 or Latin-1,
    and of cp1252 decoded as Latin-1. They are rare in correct text, but possible.
    """
    is_printable = line.isprintable()
    if len(line) > LONG_LINE:
        yield "long", 0
    if (not is_printable or _SUSPECT.search(line)) and (found := _MOJIBAKE.search(line)):
        yield "mojibake", found.start()
    if not is_printable and (found := _CONTROL.search(line)):
        yield "control", found.start()


@dataclass(frozen=True)
class Examined:
    """The content of a batch of lines.

    Attributes:
        sentences, words: numbers in each piece; white space separates words.
        hashes: a 64-bit hash of each line.
        sizes: UTF-8 bytes of each line.
        faults: kind of fault -> the lines that have it: (number of the line, excerpt).
        tokenized: the tokens; None: there is no tokenizer.
    """

    sentences: list[int]
    words: list[int]
    hashes: list[bytes]
    sizes: array[int]
    faults: dict[Fault, Places[tuple[int, str]]]
    tokenized: TokenizedLines | None


@dataclass(frozen=True)
class Examination:
    """The settings of an examination.

    Attributes:
        languages: for each source, the language by whose rules its lines are split into sentences; None: a
            line is a sentence.
        identified_share: share of the lines, chosen by hash, whose language `count_corpus` identifies.
        tokenized_share: share of the lines, chosen by hash, that are tokenized.
        tokenizer: the folder of the tokenizer; None: nothing is tokenized.
        vocab_size: the size of its vocabulary; 0: there is no tokenizer.
    """

    languages: Sequence[str | None]
    identified_share: float
    tokenized_share: float = 0.0
    tokenizer: str | None = None
    vocab_size: int = 0


class Examiner:
    """The examiner of batches, one per process."""

    def __init__(self, what: Examination):
        self._what = what
        self._tokenized_below = hash_limit(what.tokenized_share)
        self._tokenize = None
        if what.tokenizer is not None:  # otherwise neither the tokenizer nor numpy is imported
            from bertcli.tokenizer.tokenizer import Tokenizer
            from bertcli.tokenizer.word_cache import LineTokenizer

            self._tokenize = LineTokenizer(Tokenizer.load(what.tokenizer))

    def __call__(self, source: int, lines: Sequence[str], starts: Sequence[int]) -> Examined:
        encoded = [line.encode() for line in lines]
        hashes = [hashlib.blake2b(data, digest_size=8).digest() for data in encoded]
        faults: dict[Fault, Places[tuple[int, str]]] = {}
        # One test of the whole batch: most batches are plain, and their lines then need fewer tests each.
        joined = " ".join(lines)
        is_plain = joined.isprintable() and max(map(len, lines)) <= LONG_LINE
        for number, (line, data) in enumerate(zip(lines, encoded, strict=True)):
            # The UTF-8 of U+FFFD, and of every letter that can begin mojibake, begins with one of these.
            if not is_plain or b"\xc3" in data or b"\xef" in data:
                for fault, at in find_faults(line):
                    faults.setdefault(fault, Places()).add(1, [(number, excerpt(line, at))])
        language = self._what.languages[source]
        sentences = [[line] if language is None else split_sentences(line, language) for line in lines]
        pieces = list(itertools.pairwise([*starts, len(lines)]))
        tokenized = None
        if self._tokenize is not None:
            sampled = sample(hashes, self._tokenized_below)
            tokenized = self._tokenize(
                [sentences[number] for number in sampled],
                words=[count_words([lines[number]]) for number in sampled],
                pieces=array("q", (bisect_right(starts, number) - 1 for number in sampled)),
                num_pieces=len(starts),
            )
        return Examined(
            sentences=[sum(map(len, sentences[start:end])) for start, end in pieces],
            words=[count_words(lines[start:end]) for start, end in pieces],
            hashes=hashes,
            sizes=array("q", map(len, encoded)),
            faults=faults,
            tokenized=tokenized,
        )


def hash_limit(share: float) -> bytes:
    """The limit below which this share of all hashes sorts."""
    return b"\xff" * 9 if share >= 1.0 else int(share * 2**64).to_bytes(8)


def sample(hashes: Sequence[bytes], limit: bytes) -> list[int]:
    """The indices of the hashes that sort before the limit."""
    return [number for number, line_hash in enumerate(hashes) if line_hash < limit]


DOCUMENT_BITS = 40


class Piece(NamedTuple):
    """The part of one document that a batch holds.

    `place`: the number of the file, and in the low `DOCUMENT_BITS` that of the document in it, from 1.
    `end`: the end of the document; None: it continues in the next batch.
    """

    place: int
    end: DocumentEnd | None


@dataclass(frozen=True)
class Batch:
    """A batch of lines of one source in pieces: piece p has `lines` from `starts[p]` to `starts[p + 1]`, or
    the end.

    A line is a paragraph, or in Google's format a sentence.
    """

    source: int = 0
    lines: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)


def read_batches(
    files: Sequence[CorpusFile], corpus: CorpusConfig, progress: Progress, findings: list[Finding]
) -> Iterator[Batch]:
    """The text of all files, in order.

    Faults that would stop a run are added to `findings`: bytes that are not in the corpus's encoding, which
    are skipped here, and files that cannot be read to their end.
    """
    batch, size, share = Batch(), 0, 1 / len(files)
    sources = corpus.alone
    for encoding in {*(source.encoding for source in sources), *corpus.encodings.values()}:
        list(read_lines(Path(os.devnull), Decoding(encoding)))  # raises `UserError` for an unknown encoding
    for number, file in enumerate(files):
        place, read = (number << DOCUMENT_BITS) + 1, sources[file.source]
        if batch.source != file.source:
            if batch.pieces:
                yield batch
            batch, size = Batch(file.source), 0
        with failing(findings, share):
            if read.format != "parquet":
                found, decoding = bad_bytes_findings(file.path, read.decoding(file.path), share)
                findings.extend(found)
                read = with_values(read, {"bad_bytes": decoding.bad_bytes})
            for chunk in read_chunks(
                [replace(file, source=0)], read, Place(), hashes=None, progress=progress
            ):
                _append(batch, chunk, place)
                place += len(chunk.ends)
                size += sum(map(len, chunk.paragraphs))
                if size >= CHUNK_CHARACTERS // 2:
                    yield batch
                    batch, size = Batch(file.source), 0
    if batch.pieces:
        yield batch


def _append(batch: Batch, chunk: Chunk, first: int) -> None:
    """Append a chunk. `first`: the place of its first piece."""
    shift = len(batch.lines)
    batch.lines.extend(chunk.paragraphs)
    batch.starts.extend(shift + start for start in chunk.starts)
    ends = [*chunk.ends, *[None] * (len(chunk.starts) - len(chunk.ends))]
    batch.pieces.extend(itertools.starmap(Piece, enumerate(ends, first)))
