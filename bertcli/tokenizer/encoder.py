"""Texts -> the encodings of the tokenizers library, without special tokens.

The library reads registered special tokens in a text as plain text. A model may still hold them as ordinary
pieces: Unigram reads `</s>` as its separator. A text where that happens is encoded again, with these tokens
cut after their first character. All other texts keep the library's ids.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import tokenizers
from tokenizers import Encoding, Regex, normalizers, pre_tokenizers

from bertcli.tokenizer.normalize import OWN_PATTERNS

_AT_ONCE = 4096
"""Texts in one call of the library. Ctrl-C cannot interrupt a call; this many give all cores work."""


class PlainEncoder:
    """An encoder of texts with one tokenizer of the library."""

    def __init__(self, backend: tokenizers.Tokenizer, special: Mapping[str, int]):
        """Wrap `backend`. `special` holds the tokens that no text may yield, with their ids."""
        backend.encode_special_tokens = True  # "[MASK]" in a text is three tokens of plain text
        self._backend = backend
        self._special = special

    def encode(self, texts: Sequence[str], places: bool = False) -> list[tuple[list[int], Encoding]]:
        """The ids and the encoding of each text; offsets are right only with `places`."""
        encoded = _encode(self._backend, texts, places)
        never = frozenset(self._special.values())
        wrong = [number for number, (ids, _) in enumerate(encoded) if not never.isdisjoint(ids)]
        if wrong:
            again = _encode(self._cutting, [texts[number] for number in wrong], places)
            for number, better in zip(wrong, again, strict=True):
                encoded[number] = better
        return encoded

    @cached_property
    def _cutting(self) -> tokenizers.Tokenizer:
        backend = tokenizers.Tokenizer.from_str(self._backend.to_str())
        backend.encode_special_tokens = True
        cuts = "|".join(f"{re.escape(token[0])}(?={re.escape(token[1:])})" for token in self._special)
        cut = pre_tokenizers.Split(Regex(cuts), "isolated")
        before = backend.pre_tokenizer
        backend.pre_tokenizer = cut if before is None else pre_tokenizers.Sequence([before, cut])
        return backend


def with_special(backend: tokenizers.Tokenizer, contents: set[str], special: bool) -> tokenizers.Tokenizer:
    """A copy of the tokenizer in which the added tokens `contents` are special or not, as `special` says."""
    data = json.loads(backend.to_str())
    for token in data["added_tokens"]:
        if token["content"] in contents:
            token["special"] = special
    return tokenizers.Tokenizer.from_str(json.dumps(data))


def with_text_token(backend: tokenizers.Tokenizer, token: str) -> tokenizers.Tokenizer:
    """A copy of the tokenizer that reads `token` in a text as that token, with the token's own flags."""
    copied = with_special(backend, {token}, False)
    if all(added.content != token for added in copied.get_added_tokens_decoder().values()):
        copied.add_tokens([tokenizers.AddedToken(token, normalized=False)])
    return copied


def _encode(
    backend: tokenizers.Tokenizer, texts: Sequence[str], places: bool
) -> list[tuple[list[int], Encoding]]:
    encode = backend.encode_batch if places else backend.encode_batch_fast
    return [
        (encoding.ids, encoding)
        for start in range(0, len(texts), _AT_ONCE)
        for encoding in encode(list(texts[start : start + _AT_ONCE]), add_special_tokens=False)
    ]


_BY_CHARACTER = {
    kind.__name__
    for kind in (
        *(normalizers.BertNormalizer, normalizers.Lowercase, normalizers.Nmt, normalizers.StripAccents),
        *(normalizers.NFC, normalizers.NFD, normalizers.NFKC, normalizers.NFKD),
    )
}
"""Normalizers that change each character without regard to what is beyond the nearest blanks."""


def reads_word_by_word(pipeline: Mapping[str, Any]) -> bool:
    """True if the ids of a text are the ids of its words, one after the other.

    `pipeline` is the content of a `tokenizer.json`. Byte-level BPE also needs single blanks between words.
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
    """True if a step replaces only parts of words, without regard to what is beyond a blank."""
    pattern = step["pattern"] if step["type"] == "Replace" else {}
    if "Regex" in pattern:
        return pattern["Regex"] in OWN_PATTERNS
    texts = pattern.get("String", ""), step.get("content", "")
    return all(text and len(text.split()) == 1 and text == text.strip() for text in texts)


def fingerprint(pipeline: Mapping[str, Any]) -> str:
    """The SHA-256 of the content of a `tokenizer.json`, hexadecimal."""
    model = pipeline["model"]
    if model["type"] == "Unigram":  # the library may change the last bits of a score as it reads it
        scores = [[piece, float(np.float32(score))] for piece, score in model["vocab"]]
        pipeline = {**pipeline, "model": {**model, "vocab": scores}}
    canonical = json.dumps(pipeline, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
