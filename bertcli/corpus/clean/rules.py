"""The rules for one document: what is mended in it, and why it is left out."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

from bertcli.config.corpus import CleanConfig
from bertcli.corpus.language import other_language
from bertcli.corpus.streams import import_extra

Rule = Literal["mend", "shared_lines", "fewest_words", "repetition", "language", "copies", "near_copies"]
"""A key of the section `clean`."""
EDGE = 10
"""Lines at the beginning, and at the end, of a document among which shared lines are removed."""
_READ = 20
"""Lines of a document whose language is identified, evenly chosen."""
_TOP = {2: 0.20, 3: 0.18, 4: 0.16}
"""Words in a run -> largest share of the characters that the most frequent run may have."""
_REPEATED = {5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.10}
"""Words in a run -> largest share of the characters that may stand in runs that occurred before."""
_LINES, _CHARACTERS = 0.30, 0.20
"""Largest shares of repeated lines, and of the characters in them."""
_BREAK = re.compile("[\x0b\x0c\r\x1c-\x1e\x85\u2028\u2029]+")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff\ufff9-\ufffb\ufffe\uffff]")
_SIGN = r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
"""A sign of scripts without blanks between words."""


@cache
def _word() -> re.Pattern[str]:
    """A word: such a sign, or letters and digits with their marks (vowels, tones), which `\\w` lacks."""
    signs = map(chr, range(0x300, 0x10000))  # `re` tries marks beyond these one by one: 16 times as slow
    marks = "".join(sign for sign in signs if unicodedata.category(sign).startswith("M"))
    return re.compile(rf"{_SIGN}|\w+(?:[{marks}]+\w*)*")


def words_of(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation."""
    return _word().findall(text.lower())


@cache
def _ftfy() -> Any:
    return import_extra("ftfy", "scale", "clean.mend is on", doing="mending")


def mended(line: str) -> str:
    """A line in the encoding that it was written in, in NFC, without control characters.

    A line is decoded anew only if that makes it plausible (`ftfy.fix_encoding`); quotes stay as they are.
    """
    if not line.isascii():
        line = _ftfy().fix_encoding(line)
    line = _CONTROL.sub("", _BREAK.sub(" ", line))
    return unicodedata.normalize("NFC", line).strip()  # a control may have parted a letter and its mark


def without_shared(lines: Sequence[str], is_shared: Sequence[bool]) -> list[str]:
    """The lines without those at both edges that many documents share."""
    last = len(lines) - EDGE
    return [
        line
        for number, (line, shared) in enumerate(zip(lines, is_shared, strict=True))
        if not (shared and (number < EDGE or number >= last))
    ]


def reason_against(
    lines: Sequence[str], words: Sequence[str], language: str, keys: CleanConfig
) -> Rule | None:
    """The rule by which a document is left out; None if it stays."""
    if keys.fewest_words is not None and len(words) < keys.fewest_words:
        return "fewest_words"
    if keys.repetition and repeats_itself(lines, words):
        return "repetition"
    if keys.language and is_other_language(lines, language):
        return "language"
    return None


def repeats_itself(lines: Sequence[str], words: Sequence[str]) -> bool:
    """True if lines or runs of words repeat more than in prose (Rae et al. 2021, table A1)."""
    characters = sum(map(len, lines))
    repeats = Counter(lines)
    if len(lines) - len(repeats) > _LINES * len(lines):
        return True
    if sum(len(line) * (number - 1) for line, number in repeats.items()) > _CHARACTERS * characters:
        return True
    size = sum(map(len, words))
    for run, share in _TOP.items():
        counts = Counter(zip(*(words[start:] for start in range(run)), strict=False))
        if counts:
            (top, number) = max(counts.items(), key=lambda item: (item[1], item[0]))
            if number > 1 and number * sum(map(len, top)) > share * size:
                return True
    # A longer run that occurs again holds a shorter one that does.
    if _in_repeats(words, min(_REPEATED)) <= min(_REPEATED.values()) * size:
        return False
    return any(_repeated(words, run) > share * size for run, share in _REPEATED.items())


def _in_repeats(words: Sequence[str], run: int) -> int:
    """Characters of all words in runs that occurred before."""
    seen: set[tuple[str, ...]] = set()
    total = end = 0
    for place, here in enumerate(zip(*(words[start:] for start in range(run)), strict=False)):
        if here in seen:
            total += sum(map(len, words[max(end, place) : place + run]))
            end = place + run
        seen.add(here)
    return total


def _repeated(words: Sequence[str], run: int) -> int:
    """Characters in runs of words that occurred before; runs that are counted do not overlap."""
    seen: set[tuple[str, ...]] = set()
    total = place = 0
    while place + run <= len(words):
        here = tuple(words[place : place + run])
        if here in seen:
            total += sum(map(len, here))
            place += run
        else:
            seen.add(here)
            place += 1
    return total


def is_other_language(lines: Sequence[str], language: str) -> bool:
    """True if most of some lines, by characters, are likely not in this language."""
    own = other = 0
    for line in lines[:: max(1, len(lines) // _READ)]:
        found = other_language(line, language)
        if found is not None:
            own += len(line) * (not found)
            other += len(line) * bool(found)
    return other > own
