"""Examples -> the labels of a task, in the order of the model's outputs."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from bertcli.config.task import ClassWeights, TaskSettings
from bertcli.system.errors import UserError
from bertcli.tasks.examples import Example, TextExample
from bertcli.tasks.facts import facts_of
from bertcli.tasks.table import number_in, one_spelling

_LISTED = 20
"""Number of labels that a message names."""


def label_set(examples: Iterable[Example], settings: TaskSettings) -> tuple[str, ...]:
    """The labels of the training file, as the task orders them (`ReadingTask.label_set`)."""
    return facts_of(settings.type).label_set(examples, settings)


def class_labels(examples: Iterable[Example], settings: TaskSettings) -> tuple[str, ...]:
    """All labels of a classification: numbers sorted by value, then words.

    Labels that the config names keep its order; with `multi_label`, those that no row has are included. The
    order of the rows does not matter.

    Raises:
        UserError: too few labels to choose from; a label that surely means "no label".
    """
    counts = Counter(name for example in examples for name in example.names)
    _refuse_marks(counts, settings)
    columns = [column for column in settings.label_columns if isinstance(column, str)]
    declared = settings.label_names or (columns if len(columns) > 1 else None)
    found = set(counts)
    if declared is not None and (settings.multi_label or (len(found) > 1 and found <= set(declared))):
        return tuple(name for name in declared if settings.multi_label or name in found)
    if len(found) < (1 if settings.multi_label else 2):
        what = f"the label {next(iter(found))!r}" if found else "no label"
        raise UserError(f"task.train: every row has {what}; does task.label name the right column?")
    return tuple(sorted(found, key=_order))


def _refuse_marks(counts: Counter[str], settings: TaskSettings) -> None:
    """Raise `UserError` for a label that means "no label": -1 beside 0, 1, 2, or - beside words."""
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
    """The label that surely means "no label", as in SNLI; None if there is none."""
    found = {one_spelling(label) for label in labels}
    if "-1" in found and _are_classes(found - {"-1"}):
        return "-1"
    others = found - {"-"}
    are_words = len(others) > 1 and all(len(label) > 1 and label[0].isalpha() for label in others)
    return "-" if "-" in found and are_words else None


def _are_classes(labels: set[str]) -> bool:
    """True if the labels are the numbers from 0 or 1 on, at least three (-1, 0, 1 may be a scale)."""
    first = 0 if "0" in labels else 1
    return len(labels) > 2 and labels == {str(number) for number in range(first, first + len(labels))}


def spelled_as(examples: Sequence[Example], labels: Sequence[str]) -> list[Example]:
    """The examples, with labels spelled as a model's: `1.0` if it learned that instead of `1`."""
    own = {one_spelling(label): label for label in labels if label != one_spelling(label)}
    if not own.keys() - set(labels):
        return list(examples)
    return [example.spelled(own) for example in examples]


def check_labels(examples: Iterable[Example], labels: Sequence[str], settings: TaskSettings) -> None:
    """Raise `UserError` if evaluation examples have labels that the training file does not have."""
    if not labels:
        return
    known, strange = set(labels), defaultdict[str, list[str]](list)
    for example in examples:
        for label in example.names:
            if label not in known:
                strange[label].append(example.where)
    if not strange:
        return
    lines = [f"{label!r}: {len(at):,} times, first in {at[0]}" for label, at in strange.items()]
    lines = lines[:_LISTED] + ([f"and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else [])
    raise UserError(
        "labels that the model does not learn, since they do not occur in the training file "
        f"({listed(labels)}):\n  " + "\n  ".join(lines)
    )


def listed(labels: Sequence[str]) -> str:
    """The labels for a message; at most the first `_LISTED`."""
    return ", ".join(labels[:_LISTED]) + (", ..." if len(labels) > _LISTED else "")


def kept_outputs(before: Sequence[str], after: Sequence[str]) -> str:
    """What became of a model's outputs with the labels `before`, in words."""
    old, new = set(before), set(after)
    groups = {
        "kept the outputs of": [label for label in after if label in old],
        "new:": [label for label in after if label not in old],
        "gone:": [label for label in before if label not in new],
    }
    line = "; ".join(f"{what} {listed(labels)}" for what, labels in groups.items() if labels)
    return line if old != new else f"{line}, in another order"


def _order(label: str) -> tuple[float, str]:
    """Numbers first, by value; then words."""
    number = number_in(label)
    return (math.inf if number is None else number), label


def label_weights(
    given: ClassWeights, labels: Sequence[str], examples: Sequence[TextExample]
) -> dict[str, float] | None:
    """The weight of each label; balanced: rows / (labels * rows of this label), King and Zeng 2001.

    Raises `UserError` if the labels of the given weights are not those of the data.
    """
    if given is None:
        return None
    if given == "balanced":
        counts = Counter(example.label for example in examples)
        # A fold may lack a label of the other folds; its weight is never used then.
        return {label: len(examples) / (len(labels) * max(1, counts[label])) for label in labels}
    assert not isinstance(given, str)
    if set(given) != set(labels):
        found = {"missing": set(labels) - set(given), "no such label": set(given) - set(labels)}
        problems = [f"{what}: {', '.join(sorted(names))}" for what, names in found.items() if names]
        raise UserError(f"task.class_weights: give a weight for each label, {'; '.join(problems)}")
    return dict(given)
