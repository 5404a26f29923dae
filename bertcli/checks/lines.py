"""The lines of a batch -> what is in them. Worker processes do this: it imports as little as possible."""

from __future__ import annotations

import hashlib
import itertools
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bertcli.checks.findings import PLACES, excerpt
from bertcli.checks.text_faults import LONG_LINE, Fault, find_faults
from bertcli.text.corpus import count_words
from bertcli.text.sentences import split_sentences

if TYPE_CHECKING:
    from bertcli.checks.tokens import TokenizedLines


@dataclass
class Seen:
    """How many lines have a fault, and (number of the line, excerpt) of the first few."""

    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, number: int, shown: str) -> None:
        """Count a line; the first few are kept."""
        self.count += 1
        if len(self.first) < PLACES:
            self.first.append((number, shown))


@dataclass(frozen=True)
class Examined:
    """What a batch of lines holds.

    Attributes:
        sentences, words: in each piece; white space separates words.
        hashes: 64 bits of each line.
        sizes: UTF-8 bytes of each line.
        faults: for each kind, the lines that have it.
        tokenized: None where there is no tokenizer.
    """

    sentences: array[int] = field(default_factory=lambda: array("q"))
    words: array[int] = field(default_factory=lambda: array("q"))
    hashes: list[bytes] = field(default_factory=list)
    sizes: array[int] = field(default_factory=lambda: array("q"))
    faults: dict[Fault, Seen] = field(default_factory=dict)
    tokenized: TokenizedLines | None = None


@dataclass(frozen=True)
class Examination:
    """What to look for.

    Attributes:
        language: of the corpus.
        split: lines are paragraphs, to be split into sentences; False: a line is a sentence.
        identified_share: share of the lines, chosen by hash, whose language `count_corpus` identifies.
        tokenized_share: share of the lines, chosen by hash, that are tokenized.
        tokenizer: folder of the tokenizer; None: nothing is tokenized.
    """

    language: str
    split: bool
    identified_share: float
    tokenized_share: float = 0.0
    tokenizer: str | None = None


class Examiner:
    """Examines batches; one per process."""

    def __init__(self, what: Examination):
        self._what = what
        self._tokenized_below = hash_limit(what.tokenized_share)
        self._tokenize = None
        if what.tokenizer is not None:  # else neither it nor numpy is imported
            from bertcli.checks.tokens import LineTokenizer
            from bertcli.text.tokenizer import Tokenizer

            self._tokenize = LineTokenizer(Tokenizer.load(what.tokenizer))

    def __call__(self, lines: Sequence[str], starts: Sequence[int]) -> Examined:
        encoded = [line.encode() for line in lines]
        hashes = [hashlib.blake2b(data, digest_size=8).digest() for data in encoded]
        examined = Examined(hashes=hashes, sizes=array("q", map(len, encoded)))
        # First tested all at once: most batches are plain, and their lines then need fewer tests each.
        joined = " ".join(lines)
        is_plain = joined.isprintable() and max(map(len, lines)) <= LONG_LINE
        for number, (line, data) in enumerate(zip(lines, encoded, strict=True)):
            # The UTF-8 of U+FFFD, and of every letter that can begin mojibake, begins with one of these.
            if not is_plain or b"\xc3" in data or b"\xef" in data:
                for fault, at in find_faults(line):
                    examined.faults.setdefault(fault, Seen()).add(number, excerpt(line, at))
        if self._what.split:
            sentences = [split_sentences(line, self._what.language) for line in lines]
        else:
            sentences = [[line] for line in lines]
        for start, end in itertools.pairwise([*starts, len(lines)]):
            examined.sentences.append(sum(map(len, sentences[start:end])))
            examined.words.append(count_words(lines[start:end]))
        if self._tokenize is not None:
            sampled = sample(hashes, self._tokenized_below)
            pieces = array("q", (bisect_right(starts, number) - 1 for number in sampled))
            tokenized = self._tokenize(
                [sentences[number] for number in sampled],
                words=[count_words([lines[number]]) for number in sampled],
                pieces=pieces,
                num_pieces=len(starts),
            )
            return replace(examined, tokenized=tokenized)
        return examined


def hash_limit(share: float) -> bytes:
    """The bytes before which this share of all hashes sorts."""
    return b"\xff" * 9 if share >= 1.0 else int(share * 2**64).to_bytes(8)


def sample(hashes: Sequence[bytes], limit: bytes) -> list[int]:
    """The numbers of the hashes that sort before the limit."""
    return [number for number, line_hash in enumerate(hashes) if line_hash < limit]
