"""The lines of a batch -> what is in them. Worker processes do this: it imports as little as it can."""

from __future__ import annotations

import hashlib
import itertools
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bertcli.checks.findings import PLACES, excerpt
from bertcli.checks.language import is_judged, other_language
from bertcli.checks.text_faults import LONG_LINE, Fault, find_faults, may_have_faults
from bertcli.text.sentences import split_sentences

if TYPE_CHECKING:
    from bertcli.checks.tokens import TokenisedLines


@dataclass
class Seen:
    """How often, and (number of the line, what stands there) of the first few."""

    count: int = 0
    first: list[tuple[int, str]] = field(default_factory=list)

    def add(self, number: int, shown: str) -> None:
        self.count += 1
        if len(self.first) < PLACES:
            self.first.append((number, shown))


@dataclass(frozen=True)
class Examined:
    """What a batch of lines holds.

    Attributes:
        sentences, words: of each piece; words are separated by white space.
        hashes: 64 bits of each line.
        sizes: UTF-8 bytes of each line.
        faults: of each kind, the lines that have it.
        tokenised: None where there is no tokenizer.
        judged: the numbers of the lines whose language was judged.
        others: language or script -> the lines that likely are in it.
    """

    sentences: array[int] = field(default_factory=lambda: array("q"))
    words: array[int] = field(default_factory=lambda: array("q"))
    hashes: list[bytes] = field(default_factory=list)
    sizes: array[int] = field(default_factory=lambda: array("q"))
    faults: dict[Fault, Seen] = field(default_factory=dict)
    judged: array[int] = field(default_factory=lambda: array("q"))
    others: dict[str, Seen] = field(default_factory=dict)
    tokenised: TokenisedLines | None = None


@dataclass(frozen=True)
class Examination:
    """What to look for.

    Attributes:
        language: of the corpus.
        split: lines are paragraphs, to be split into sentences; False: a line is a sentence.
        judged_share, tokenised_share: of the lines, by their hash.
        tokenizer: the folder of one; None: nothing is tokenised.
    """

    language: str
    split: bool
    judged_share: float
    tokenised_share: float = 0.0
    tokenizer: str | None = None


class Examiner:
    """Examines batch after batch; one a process."""

    def __init__(self, what: Examination):
        self._what = what
        self._judged_below = _hash_limit(what.judged_share if is_judged(what.language) else 0.0)
        self._tokenised_below = _hash_limit(what.tokenised_share)
        self._tokenise = None
        if what.tokenizer is not None:  # else neither it nor numpy is imported
            from bertcli.checks.tokens import LineTokeniser
            from bertcli.text.tokenizer import Tokenizer

            self._tokenise = LineTokeniser(Tokenizer.load(what.tokenizer))

    def __call__(self, lines: Sequence[str], starts: Sequence[int]) -> Examined:
        examined = Examined()
        sampled: list[list[str]] = []
        pieces = array("q")
        # Looked at as a whole first: most batches are plain, and then less is left to do for each line.
        whole = " ".join(lines)
        is_plain = whole.isprintable() and max(map(len, lines)) <= LONG_LINE
        one_blank_each = is_plain and "  " not in whole
        for piece, (start, end) in enumerate(itertools.pairwise([*starts, len(lines)])):
            num_sentences = num_words = 0
            for number in range(start, end):
                line = lines[number]
                data = line.encode()
                line_hash = hashlib.blake2b(data, digest_size=8).digest()
                examined.hashes.append(line_hash)
                examined.sizes.append(len(data))
                if not is_plain or may_have_faults(data):
                    for fault, at in find_faults(line):
                        examined.faults.setdefault(fault, Seen()).add(number, excerpt(line, at))
                if line_hash < self._judged_below:
                    self._judge_language(examined, number, line)
                sentences = split_sentences(line, self._what.language) if self._what.split else [line]
                num_sentences += len(sentences)
                num_words += _count_words(line, sentences, one_blank_each)
                if line_hash < self._tokenised_below:
                    sampled.append(sentences)
                    pieces.append(piece)
            examined.sentences.append(num_sentences)
            examined.words.append(num_words)
        if self._tokenise is not None:
            return replace(examined, tokenised=self._tokenise(sampled, pieces, len(starts)))
        return examined

    def _judge_language(self, examined: Examined, number: int, line: str) -> None:
        other = other_language(line, self._what.language)
        if other is not None:
            examined.judged.append(number)
            if other:
                examined.others.setdefault(other, Seen()).add(number, excerpt(line))


def _hash_limit(share: float) -> bytes:
    """Of all hashes, this share sorts before it."""
    return b"\xff" * 9 if share >= 1.0 else int(share * 2**64).to_bytes(8)


def _count_words(line: str, sentences: Sequence[str], one_blank_each: bool) -> int:
    """Words of a line's sentences, separated by white space: single blanks are faster counted than cut at."""
    if one_blank_each and sum(map(len, sentences)) + len(sentences) - 1 == len(line):  # cut at blanks alone
        return line.count(" ") + 1
    return sum(len(sentence.split()) for sentence in sentences)
