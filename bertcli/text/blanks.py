"""Whether a tokenizer's pipeline reads the words between blanks one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tokenizers import normalizers, pre_tokenizers

from bertcli.text.new_normalizer import OWN_PATTERNS

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
    if not all(step["type"] in _BY_CHARACTER or _stays_inside_words(step) for step in steps):
        return False
    if before.get("type") == "ByteLevel":
        return before["add_prefix_space"] and before["use_regex"]
    parts = before.get("pretokenizers", [])
    if [part["type"] for part in parts] == ["WhitespaceSplit", "Metaspace"]:
        return parts[1]["prepend_scheme"] == "always"
    return before.get("type") == pre_tokenizers.BertPreTokenizer.__name__


def _stays_inside_words(step: Mapping[str, Any]) -> bool:
    """Whether a step replaces parts of words, whatever stands beyond a blank."""
    pattern = step["pattern"] if step["type"] == "Replace" else {}
    if "Regex" in pattern:
        return pattern["Regex"] in OWN_PATTERNS
    texts = pattern.get("String", ""), step.get("content", "")
    return all(text and len(text.split()) == 1 and text == text.strip() for text in texts)
