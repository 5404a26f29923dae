"""The characters of a text -> those that a vocabulary holds."""

from __future__ import annotations

import string
from collections import Counter

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
    visible = [character for character in characters if not character.isspace()]
    commonest = sorted(visible, key=lambda c: (-characters[c], c))[:limit]
    return sorted({*commonest, *normalizer.normalize_str(ALWAYS)})
