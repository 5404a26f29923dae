"""Some lines of a corpus -> one line as written and as the model reads it, and properties of all of them."""

from __future__ import annotations

import itertools
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bertcli.config.schema import CorpusConfig
from bertcli.errors import UserError
from bertcli.text.corpus import read_paragraphs
from bertcli.text.sources import Source
from bertcli.text.tokenizer import Tokenizer

_FILES, _LINES = 6, 100
"""Files, evenly chosen, and the first lines of each."""
_LONGEST = 100
"""Characters shown."""
_LONGEST_WORD = 100
"""Characters: WordPiece, and no other kind, reads a longer word as a single unknown token."""


class LineLook(NamedTuple):
    """Properties of a few hundred lines.

    Attributes:
        written, read: the line that the model reads most differently, in both forms.
        blanks: per character.
        unbroken: share of the characters that are in words too long to be read.
        stripped: share of the words that lose a mark on a letter.
        tokens_per_character: blanks are not counted.
    """

    written: str
    read: str
    blanks: float
    unbroken: float
    stripped: float
    tokens_per_character: float


def look_at_lines(sources: Sequence[Source], corpus: CorpusConfig, tokenizer: Tokenizer) -> LineLook | None:
    """None: no line can be read."""
    lines, lengths = [], list[int]()
    for line in _lines(sources, corpus):
        lines.append(_cut(line))
        lengths += map(len, line.split())
    if not lines:
        return None
    pieces = [[tokenizer.token(i) for i in ids] for ids in tokenizer.encode_batch(lines)]
    shown = [tokenizer.join(each) for each in pieces]
    number = max(range(len(lines)), key=lambda n: _strangeness(lines[n], shown[n]))
    words = [word for line in lines for word in line.split()]
    letters = max(1, sum(map(len, words)))
    unread = [length for length in lengths if length > _LONGEST_WORD] if tokenizer.kind == "WordPiece" else []
    return LineLook(
        written=lines[number],
        read=shown[number],
        blanks=sum(line.count(" ") for line in lines) / max(1, sum(map(len, lines))),
        unbroken=sum(unread) / max(1, sum(lengths)),
        stripped=sum(map(_has_marks, words)) / max(1, len(words)) if tokenizer.strips_accents else 0.0,
        tokens_per_character=sum(map(len, pieces)) / letters,
    )


def _lines(sources: Sequence[Source], corpus: CorpusConfig) -> Iterator[str]:
    step = max(1, len(sources) // _FILES)
    for source in sources[::step][:_FILES]:
        paragraphs = (line for line in read_paragraphs(source.path, corpus) if line is not None)
        try:
            yield from itertools.islice(paragraphs, _LINES)
        except UserError:  # reported, with the place, by the code that reads all of the file
            continue


def _cut(line: str) -> str:
    """The line's beginning, to the end of a word where it has blanks."""
    if len(line) <= _LONGEST:
        return line
    start = line[:_LONGEST]
    return start.rpartition(" ")[0] or start


def _strangeness(written: str, read: str) -> tuple[int, int, int]:
    """How many characters are read differently; then how many letters are not ASCII; then the length."""
    own, seen = (
        Counter("".join(unicodedata.normalize("NFC", text.lower()).split())) for text in (written, read)
    )
    different = (own - seen).total() + (seen - own).total()
    return different, sum(letter.isalpha() and not letter.isascii() for letter in written), len(written)


def _has_marks(word: str) -> bool:
    return any(unicodedata.category(character) == "Mn" for character in unicodedata.normalize("NFD", word))
