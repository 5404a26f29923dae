"""Tags of words -> entities and their precision, recall and F1, by the rules of the CoNLL shared tasks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bertcli.metrics.shares import precision_recall_f1


@dataclass(frozen=True)
class Chunk:
    """An entity as words `start` to `end` (exclusive) of its sentence."""

    type: str
    start: int
    end: int


def chunks(tags: Sequence[str]) -> list[Chunk]:
    """The entities of one sentence's BIO tags, which may be ill-formed.

    The rules of conlleval (Tjong Kim Sang and De Meulder 2003): an entity starts at every B, and at an I
    after another type or after a word outside; it ends before the next start or word outside. Any tag other
    than B and I is outside.
    """
    found: list[Chunk] = []
    start = 0
    open_type: str | None = None
    for i, tag in enumerate([*tags, "O"]):
        prefix, _, kind = tag.partition("-")
        if open_type is not None and not (prefix == "I" and kind == open_type):
            found.append(Chunk(open_type, start, i))
            open_type = None
        if open_type is None and prefix in ("B", "I"):
            open_type, start = kind, i
    return found


def entity_scores(truth: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Scores of sentences of tags, in 0..1 (conlleval prints hundredths).

    `precision`, `recall` and `f1` count entities: right if words and type are exactly those of the truth.
    `accuracy` counts words; `per_type` has the three scores by type, and `count`, the entities in the truth.
    A share of zero items is 0.
    """
    true, found, right = Counter[str](), Counter[str](), Counter[str]()
    words = right_words = 0
    for true_tags, tags in zip(truth, predicted, strict=True):
        true_chunks, tag_chunks = set(chunks(true_tags)), set(chunks(tags))
        true.update(chunk.type for chunk in true_chunks)
        found.update(chunk.type for chunk in tag_chunks)
        right.update(chunk.type for chunk in true_chunks & tag_chunks)
        words += len(true_tags)
        right_words += sum(a == b for a, b in zip(true_tags, tags, strict=True))
    overall = precision_recall_f1(right.total(), found.total(), true.total())
    return {
        **{name: overall[name] for name in ("precision", "recall", "f1")},
        "accuracy": right_words / max(1, words),
        "per_type": {
            kind: precision_recall_f1(right[kind], found[kind], true[kind]) for kind in sorted(true | found)
        },
    }
