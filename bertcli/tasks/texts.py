"""Texts and pairs -> items of one row each, for classification and regression; how well pairs are ranked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bertcli.examples.examples import TextExample
from bertcli.metrics.ranking import reranking_scores
from bertcli.tasks.supervised import Item
from bertcli.text.tokenizer import Tokenizer


def encode_texts(
    examples: Sequence[TextExample], tokenizer: Tokenizer, max_length: int, target: Callable[[Any], Any]
) -> list[Item]:
    """An item for each `TextExample`; `target` turns a label into the loss's target, if there is a label."""
    ids_a = tokenizer.encode_batch([text.text_a for text in examples])
    ids_b = iter(tokenizer.encode_batch([text.text_b for text in examples if text.text_b is not None]))
    frame, items = tokenizer.frame, []
    for number, (text, a) in enumerate(zip(examples, ids_a, strict=True)):
        b = None if text.text_b is None else next(ids_b)
        row = frame.fit(a, b, max_length)
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
