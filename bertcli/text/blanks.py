"""Whether a tokenizer's pipeline reads the words between blanks one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenizers import normalizers, pre_tokenizers

_BY_CHARACTER = {
    kind.__name__
    for kind in (
        *(normalizers.BertNormalizer, normalizers.Lowercase, normalizers.Nmt, normalizers.StripAccents),
        *(normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD),
    )
}
"""Normalizers that change no character by what stands beyond a blank."""


def reads_word_by_word(pipeline: Mapping[str, Any]) -> bool:
    """Whether the ids of a text are those of its words, one after the other.

    `pipeline`: a `tokenizer.json`. With byte-level BPE this is so only where single blanks stand between
    words.
    """
    normalizer, before = pipeline["normalizer"], pipeline["pre_tokenizer"] or {}
    steps = [] if normalizer is None else normalizer.get("normalizers", [normalizer])
    if any(step["type"] not in _BY_CHARACTER for step in steps):
        return False
    if before.get("type") == "ByteLevel":
        return before["add_prefix_space"] and before["use_regex"]
    parts = before.get("pretokenizers", [])
    if [part["type"] for part in parts] == ["WhitespaceSplit", "Metaspace"]:
        return parts[1]["prepend_scheme"] == "always"
    return before.get("type") == pre_tokenizers.BertPreTokenizer.__name__
