"""Examples -> the labels of a task, in the order of the model's outputs; other examples checked by them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.examples.examples import Example, TaggedExample, TextExample

_LISTED = 20
"""Labels that a message names."""


def label_set(examples: Iterable[Example], settings: TaskSettings) -> tuple[str, ...]:
    """All labels: numbers sorted by value, then words. The order of the rows does not matter.

    token-classification: "O", then B and I of each type, even if only one of them occurs. Empty for tasks
    whose outputs have no names.

    Raises:
        UserError: too few labels to choose from.
    """
    if settings.type == "token-classification":
        types = {tag[1:] for _, tag in _labels(examples) if tag != "O"}
        if not types:
            raise UserError("task.train: every word has the tag O; expected at least one entity")
        return ("O", *(letter + kind for kind in sorted(types) for letter in "BI"))
    if settings.type != "classification":
        return ()
    found = {label for _, label in _labels(examples)}
    if len(found) < (1 if settings.multi_label else 2):
        what = f"the label {next(iter(found))!r}" if found else "no label"
        raise UserError(f"task.train: every row has {what}; does task.label name the right column?")
    return tuple(sorted(found, key=_order))


def check_labels(examples: Iterable[Example], labels: Sequence[str], settings: TaskSettings) -> None:
    """Raise `UserError` if evaluation examples have labels that the training file does not have."""
    if not labels:
        return
    strange: Counter[str] = Counter()
    first: dict[str, str] = {}
    for where, label in _labels(examples):
        if label not in labels:
            strange[label] += 1
            first.setdefault(label, where)
    if not strange:
        return
    lines = [f"{label!r}: {count:,} times, first in {first[label]}" for label, count in strange.items()]
    lines = lines[:_LISTED] + ([f"and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else [])
    raise UserError(
        "labels that the model does not learn, since they do not occur in the training file "
        f"({listed(labels)}):\n  " + "\n  ".join(lines)
    )


def listed(labels: Sequence[str]) -> str:
    """The labels for a message; the first of many."""
    return ", ".join(labels[:_LISTED]) + (", ..." if len(labels) > _LISTED else "")


def _labels(examples: Iterable[Example]) -> Iterator[tuple[str, str]]:
    """(place, label) of every label and tag."""
    for example in examples:
        if isinstance(example, TaggedExample):
            yield from ((example.where, tag) for tag in example.tags or ())
        elif isinstance(example, TextExample):
            several = example.label if isinstance(example.label, tuple) else (example.label,)
            yield from ((example.where, label) for label in several if isinstance(label, str))


def _order(label: str) -> tuple[float, str]:
    """Numbers first, by value; then words."""
    try:
        number = float(label)
    except ValueError:
        return math.inf, label
    return (math.inf if math.isnan(number) else number), label
