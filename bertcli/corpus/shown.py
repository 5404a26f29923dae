"""Some lines of a corpus -> one of them as written and as the model reads it, and properties of all."""

import itertools
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from bertcli.config.corpus import CorpusConfig
from bertcli.corpus.documents import read_paragraphs
from bertcli.corpus.files import CorpusFile
from bertcli.system.errors import UserError
from bertcli.tokenizer.pieces import PlacedPieces
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.wordpiece import LONGEST_WORD

_FILES, _LINES = 6, 100
"""The most files, evenly chosen, and the most lines from the start of each."""
_LONGEST = 100
"""The most characters of a line that are shown."""
_READ = 1000
"""The most characters of a line that are tokenized; many times the longest word that can be read."""


class LineLook(NamedTuple):
    """The properties of a few hundred lines.

    Attributes:
        written, read: the two forms of the line that the model reads most differently.
        blanks: the number of blanks per character.
        unbroken: the share of characters in words that are too long to be read.
        stripped: the share of words that lose a mark on a letter.
        tokens_per_character: the number of tokens per character; blanks are not counted.
    """

    written: str
    read: str
    blanks: float
    unbroken: float
    stripped: float
    tokens_per_character: float


def look_at_lines(files: Sequence[CorpusFile], corpus: CorpusConfig, tokenizer: Tokenizer) -> LineLook | None:
    """The properties of some lines of the corpus; None if no line can be read."""
    whole = [line[:_READ] for line in _lines(files, corpus)]
    if not whole:
        return None
    placed = tokenizer.encode_with_spans(whole)
    lines = [line[: _end(line)] for line in whole]
    pieces = [
        [
            tokenizer.token(id)
            for id, (start, _) in zip(each.ids, each.spans, strict=True)
            if start < len(line)
        ]
        for line, each in zip(lines, placed, strict=True)
    ]
    shown = [tokenizer.join(each) for each in pieces]
    number = max(range(len(lines)), key=lambda n: _strangeness(lines[n], shown[n]))
    words = [word for line in lines for word in line.split()]
    return LineLook(
        written=lines[number],
        read=shown[number],
        blanks=sum(line.count(" ") for line in lines) / max(1, sum(map(len, lines))),
        unbroken=sum(_unread(each, tokenizer) for each in placed) / max(1, sum(map(_letters, whole))),
        stripped=sum(map(_has_marks, words)) / max(1, len(words)) if tokenizer.strips_accents else 0.0,
        tokens_per_character=sum(map(len, pieces)) / max(1, sum(map(_letters, lines))),
    )


def _unread(placed: PlacedPieces, tokenizer: Tokenizer) -> int:
    """The number of characters in words that are unknown because of their length."""
    lengths = (placed.spans[:, 1] - placed.spans[:, 0])[np.array(placed.ids, np.int64) == tokenizer.unk_id]
    return int(lengths[lengths > LONGEST_WORD].sum())


def _letters(line: str) -> int:
    return sum(map(len, line.split()))


def _lines(files: Sequence[CorpusFile], corpus: CorpusConfig) -> Iterator[str]:
    step = max(1, len(files) // _FILES)
    for file in files[::step][:_FILES]:
        paragraphs = (line for line in read_paragraphs(file.path, corpus.of(file.source)) if line is not None)
        try:
            yield from itertools.islice(paragraphs, _LINES)
        except UserError:  # reported, with the place, by the code that reads all of the file
            continue


def _end(line: str) -> int:
    """The end of the part of a line that is shown; it is the end of a word if the line has blanks."""
    if len(line) <= _LONGEST:
        return len(line)
    return len(line[:_LONGEST].rpartition(" ")[0]) or _LONGEST


def _strangeness(written: str, read: str) -> tuple[int, int, int]:
    """The sort key of a line: characters that are read differently, letters outside ASCII, the length."""
    own, seen = (
        Counter("".join(unicodedata.normalize("NFC", text.lower()).split())) for text in (written, read)
    )
    different = (own - seen).total() + (seen - own).total()
    return different, sum(letter.isalpha() and not letter.isascii() for letter in written), len(written)


def _has_marks(word: str) -> bool:
    return any(unicodedata.category(character) == "Mn" for character in unicodedata.normalize("NFD", word))
