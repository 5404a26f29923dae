"""Texts and pairs -> items of one row each, for classification and regression; how well pairs are ranked."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bertcli.examples.examples import TextExample
from bertcli.metrics.ranking import reranking_scores
from bertcli.tasks.supervised import Item
from bertcli.text.tokenizer import Tokenizer

_AT_ONCE = 4096
"""Texts that are tokenized together: what the library returns takes far more memory than the ids."""


def encode_texts(
    examples: Sequence[TextExample], tokenizer: Tokenizer, max_length: int, target: Callable[[Any], Any]
) -> list[Item]:
    """An item for each `TextExample`; `target` turns a label into the loss's target, if there is a label."""
    frame = tokenizer.frame
    items: list[Item] = []
    for start in range(0, len(examples), _AT_ONCE):
        some = examples[start : start + _AT_ONCE]
        ids_a = tokenizer.encode_batch([text.text_a for text in some])
        ids_b = iter(tokenizer.encode_batch([text.text_b for text in some if text.text_b is not None]))
        for number, (text, a) in enumerate(zip(some, ids_a, strict=True), start=start):
            b = None if text.text_b is None else next(ids_b)
            row = frame.fit(a, b, max_length)
            row = replace(row, ids=array("i", row.ids))  # a list takes five times the memory
            full = len(a) + len(b or ()) + frame.cost(b is not None)
            answer = None if text.label is None else target(text.label)
            items.append(Item(number, (row,), answer, dropped=full - row.length, full_length=full))
    return items


def pair_ranking(
    examples: Sequence[TextExample], labels: Sequence[float], scores: Sequence[float]
) -> dict[str, float]:
    """`metrics.ranking.reranking_scores` of pairs, by their first texts; empty for single texts."""
    if any(example.text_b is None for example in examples):
        return {}
    return reranking_scores([example.text_a for example in examples], labels, scores)
