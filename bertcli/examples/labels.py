"""Examples -> the labels of a task, in the order of the model's outputs; other examples checked by them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.examples.examples import Example, TaggedExample, TextExample
from bertcli.examples.label_cells import one_spelling

_LISTED = 20
"""Labels that a message names."""


def label_set(examples: Iterable[Example], settings: TaskSettings) -> tuple[str, ...]:
    """All labels: numbers sorted by value, then words; or in the order in which the config names them, and
    with any number of labels a text also those that no row has. The order of the rows does not matter.

    token-classification: "O", then B and I of each type, even if only one of them occurs. Empty for tasks
    whose outputs have no names.

    Raises:
        UserError: too few labels to choose from; a label that surely says that a row has none.
    """
    if settings.type == "token-classification":
        types = {tag[1:] for _, tag in _labels(examples) if tag != "O"}
        if not types:
            raise UserError("task.train: every word has the tag O; expected at least one entity")
        return ("O", *(letter + kind for kind in sorted(types) for letter in "BI"))
    if settings.type != "classification":
        return ()
    counts = Counter(label for _, label in _labels(examples))
    _refuse_marks(counts, settings)
    columns = [column for column in settings.label_columns if isinstance(column, str)]
    declared = settings.label_names or (columns if len(columns) > 1 else None)
    found = set(counts)
    if declared is not None and (settings.multi_label or found <= set(declared)):
        return tuple(name for name in declared if settings.multi_label or name in found)
    if len(found) < (1 if settings.multi_label else 2):
        what = f"the label {next(iter(found))!r}" if found else "no label"
        raise UserError(f"task.train: every row has {what}; does task.label name the right column?")
    return tuple(sorted(found, key=_order))


def _refuse_marks(counts: Counter[str], settings: TaskSettings) -> None:
    """Raise `UserError` for a label that says that a row has none: -1 beside 0, 1, 2, or - beside words."""
    mark = mark_of_no_label(counts)
    if mark is None or settings.skip_labels is not None or mark in (settings.label_names or ()):
        return
    others = listed(sorted(set(counts) - {mark}, key=_order))
    raise UserError(
        f"task.train: {counts[mark]:,} rows have the label {mark!r} beside {others}: it usually says that a "
        f'row has no label. Leave these rows out: task.skip_labels: ["{mark}"]; or learn it as a label: '
        "task.skip_labels: []"
    )


def mark_of_no_label(labels: Iterable[str]) -> str | None:
    """The one of the labels that surely says that a row has none, as in SNLI; None: there is none."""
    found = {one_spelling(label) for label in labels}
    for mark, fit in (("-1", _are_classes), ("-", _are_words)):
        if mark in found and fit(found - {mark}):
            return mark
    return None


def _are_classes(labels: set[str]) -> bool:
    """Whether these are the numbers from 0 or 1 on, three at least (-1, 0, 1 may be a scale)."""
    first = 0 if "0" in labels else 1
    return len(labels) > 2 and labels == {str(number) for number in range(first, first + len(labels))}


def _are_words(labels: set[str]) -> bool:
    return len(labels) > 1 and all(len(label) > 1 and label[0].isalpha() for label in labels)


def spelled_as(examples: Sequence[Example], labels: Sequence[str]) -> list[Example]:
    """The examples with the spelling of a model's labels: `1.0` where it learned that instead of `1`."""
    own = {one_spelling(label): label for label in labels if label != one_spelling(label)}
    if not own.keys() - set(labels):
        return list(examples)
    spelled = []
    for example in examples:
        if isinstance(example, TextExample) and isinstance(example.label, str | tuple):
            label = example.label
            known = own.get(label, label) if isinstance(label, str) else tuple(own.get(a, a) for a in label)
            example = replace(example, label=known)
        spelled.append(example)
    return spelled


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
