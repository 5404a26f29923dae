"""Token ids of a text or a pair -> the row that the model reads, no longer than it may be."""

from __future__ import annotations

from collections.abc import Sequence

from bertcli.data.rows import Row, pair, single
from bertcli.text.tokenizer import Tokenizer


def frame(a: Sequence[int], b: Sequence[int] | None, tokenizer: Tokenizer, max_length: int) -> Row:
    """`[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, of at most `max_length` tokens (int >= 3).

    A longer one loses tokens from the end; of a pair always the longer side, b where both are equal
    (Devlin et al. 2019, section 4: packed as in pre-training).
    """
    if b is None:
        return single(a[: max_length - 2], tokenizer.cls_id, tokenizer.sep_id)
    kept_a, kept_b = longest_first(len(a), len(b), max_length - 3)
    return pair(a[:kept_a], b[:kept_b], tokenizer.cls_id, tokenizer.sep_id)


def longest_first(a: int, b: int, room: int) -> tuple[int, int]:
    """How many of `a` and `b` tokens stay when one is dropped from the longer (a tie: b) until they fit."""
    if a + b <= room:
        return a, b
    half = (room + 1) // 2
    if b <= room - half:
        return room - b, b
    if a <= half:
        return a, room - a
    return half, room - half
