"""The characters of a text -> those that a vocabulary holds."""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from tokenizers import normalizers

MIN_ALPHABET = 1000
"""Characters that even a small vocabulary keeps; in a larger one they fill up to a quarter of the entries."""
ALWAYS = string.ascii_letters + string.digits + string.punctuation
"""In every alphabet: people type them, even if this corpus lacks some."""


def choose_alphabet(
    characters: Counter[str], vocab_size: int, normalizer: normalizers.Normalizer
) -> list[str]:
    """The commonest of the normalized `characters`, with ASCII, by code point; never white space."""
    limit = max(MIN_ALPHABET, vocab_size // 4)
    return sorted({*_by_frequency(characters)[:limit], *normalizer.normalize_str(ALWAYS)})


def more_characters(
    characters: Counter[str], alphabet: Sequence[str], free: int, entries: Callable[[str], int]
) -> list[str]:
    """The commonest characters besides `alphabet` that fit into the `free` entries of a trained vocabulary.

    `entries`: how many a character takes.
    """
    known, more = set(alphabet), list[str]()
    for character in _by_frequency(characters):
        if free <= 0:
            break
        if character not in known and entries(character) <= free:
            free -= entries(character)
            more.append(character)
    return more


def cut_at_rare(
    lines: Iterator[str],
    characters: Counter[str],
    alphabet: Sequence[str],
    normalizer: normalizers.Normalizer,
) -> Iterator[str]:
    """The normalized lines, in which characters besides `alphabet` end a word: they would be unknown."""
    blanks = {ord(character): " " for character in {"\0", *characters} - {*alphabet}}
    return (normalizer.normalize_str(line).translate(blanks) for line in lines)


def _by_frequency(characters: Counter[str]) -> list[str]:
    visible = [character for character in characters if not character.isspace()]
    return sorted(visible, key=lambda c: (-characters[c], c))
