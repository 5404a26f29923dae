"""Labelled examples -> what a user should know of them before a model learns from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from bertcli.config.finetune import TaskSettings
from bertcli.labelled.examples import ChoiceExample, Example, QuestionExample, TaggedExample, TextExample

_LISTED = 12
"""So many labels are named; the others are counted."""
_SHOWN = 3
"""So many contradictions are shown."""


def describe(
    train: Sequence[Example], dev: Sequence[Example] | None, lengths: Sequence[int], settings: TaskSettings
) -> list[str]:
    """Lines to print; the arguments are those of `figures`."""
    found = figures(train, dev, lengths, settings)
    return overview(found) + _warnings(found)


def overview(found: dict[str, Any]) -> list[str]:
    """The rows and labels of each file, and the lengths, of `figures`."""
    lines = [f"{split}: {rows:,} rows{_listed(found, split)}" for split, rows in found["rows"].items()]
    sizes = found["lengths"]
    lines.append(
        f"lengths: median {sizes['median']:,} tokens, 95 % up to {sizes['p95']:,}, longest {sizes['max']:,}"
        + (f"; {sizes['cut']:.1%} are cut at {sizes['max_length']} (task.max_length)" if sizes["cut"] else "")
    )
    return lines


def figures(
    train: Sequence[Example], dev: Sequence[Example] | None, lengths: Sequence[int], settings: TaskSettings
) -> dict[str, Any]:
    """The same by name.

    Args:
        lengths: tokens of each row to learn from, [CLS] and [SEP] included, before any was cut.

    Returns:
        `rows`, `counts` and `duplicates`, each {train, dev}, without dev where there is none. `counts` are of
        labels: rows, or for token-classification the entities of each type; for regression `values` {min,
        mean, max} instead. `duplicates` are rows that repeat one before them, and besides {across}: rows of
        dev whose text stands in train. `lengths` {median, p95, max, max_length, cut: share of the rows}.
        `contradictions`: texts of train with several labels, {text, where, labels} each.
    """
    splits = {"train": train} if dev is None else {"train": train, "dev": dev}
    train_texts = {example.texts for example in train}
    what, count = ("values", _values) if settings.type == "regression" else ("counts", _counts)
    return {
        "rows": {split: len(each) for split, each in splits.items()},
        what: {split: count(each) for split, each in splits.items()},
        "lengths": {
            "median": int(np.median(lengths)),
            "p95": int(np.percentile(lengths, 95)),
            "max": int(max(lengths)),
            "max_length": settings.max_length,
            "cut": float(np.mean(np.array(lengths) > settings.max_length)),
        },
        "duplicates": {
            **{split: len(each) - len({e.texts for e in each}) for split, each in splits.items()},
            **({} if dev is None else {"across": sum(example.texts in train_texts for example in dev)}),
        },
        "contradictions": _contradictions(train),
    }


def _values(examples: Sequence[Example]) -> dict[str, float]:
    numbers = [each.label for each in examples if isinstance(each, TextExample)]
    values = np.array(numbers, dtype=np.float64)
    return {"min": float(values.min()), "mean": float(values.mean()), "max": float(values.max())}


def _counts(examples: Sequence[Example]) -> dict[str, int]:
    """The most frequent first."""
    counts = Counter(name for example in examples for name in _names(example))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _names(example: Example) -> Sequence[str]:
    """What is counted of an example."""
    if isinstance(example, TaggedExample):
        return [tag[2:] or "entity" for tag in example.tags or () if tag[0] == "B"]
    if isinstance(example, QuestionExample):
        return ["answered" if example.answers else "without an answer"]
    if isinstance(example, ChoiceExample):
        return [f"choice {example.label}"]
    assert isinstance(example, TextExample)
    return example.label if isinstance(example.label, tuple) else [str(example.label)]


def _contradictions(examples: Sequence[Example]) -> list[dict[str, Any]]:
    labels: dict[tuple[str, ...], dict[Any, str]] = {}
    for example in examples:
        label = _label(example)
        if label is not None:
            labels.setdefault(example.texts, {}).setdefault(label, example.where)
    return [
        {"text": " | ".join(texts), "where": list(each.values()), "labels": list(each)}
        for texts, each in labels.items()
        if len(each) > 1
    ]


def _label(example: Example) -> Any:
    """What may not differ for one text; numbers and answers may."""
    if isinstance(example, TextExample):
        if isinstance(example.label, tuple):
            return tuple(sorted(example.label))
        return example.label if isinstance(example.label, str) else None
    return example.tags if isinstance(example, TaggedExample) else None


def _listed(found: dict[str, Any], split: str) -> str:
    if "values" in found:
        values = found["values"][split]
        return f"; values from {values['min']:g} to {values['max']:g}, {values['mean']:.3g} in the mean"
    counts = found["counts"][split]
    total = sum(counts.values())
    named = [f"{name} {count:,} ({count / total:.1%})" for name, count in list(counts.items())[:_LISTED]]
    more = [f"{len(counts) - _LISTED} more"] if len(counts) > _LISTED else []
    return f"; {', '.join(named + more)}" if named else ""


def _warnings(found: dict[str, Any]) -> list[str]:
    lines = []
    duplicates = found["duplicates"]
    for split in found["rows"]:
        if duplicates[split]:
            lines.append(f"warning: {duplicates[split]:,} rows of {split} repeat the text of another one")
    if duplicates.get("across"):
        lines.append(
            f"warning: {duplicates['across']:,} rows of dev are in train as well: scores come out too good"
        )
    contradictions = found["contradictions"]
    if contradictions:
        lines.append(f"warning: one text, several labels: {len(contradictions):,} texts of train")
        for each in contradictions[:_SHOWN]:
            text = each["text"] if len(each["text"]) <= 60 else each["text"][:57] + "..."
            lines.append(f"  {text!r}: {'; '.join(each['where'])}")
    return lines
