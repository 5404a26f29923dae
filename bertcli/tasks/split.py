"""Labeled rows -> those to learn from and those to evaluate on, with the shares of their labels."""

import hashlib
import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from bertcli.config.task import Column
from bertcli.system.errors import UserError
from bertcli.tasks.examples import AnyExample, Example, TextExample
from bertcli.tasks.table import one_spelling

Texts = tuple[str, ...]
"""What rows have in common that are on one side of a split: texts, or the value of `task.group`."""
_ROUNDS = 10
"""Most times that each group is moved to a better side; after three or four rounds few groups move."""
_MOST_ORDERS, _PLACED = 63, 4000
"""Most further orders in which groups are placed, and about how many placings all of them may take."""
_WEIGHT_OF_ROWS = 0.1
"""Weight of the shares of rows, beside 1 for the shares of each label."""


def split_dev(
    examples: Sequence[AnyExample], fraction: float, seed: int, group: Column | None = None
) -> tuple[list[AnyExample], list[AnyExample]]:
    """(train, dev), each in the order of the file; about `fraction` of the rows are dev.

    The split depends on seed and content, not on the place of a row. Rows of the same text (questions about
    the same context) are on the same side. So are pairs of the same first text that may be ranked, unless
    there are too few first texts. Copies of a text are on both sides only if dev would otherwise be empty.
    Dev has `fraction` of each class, and about that of each label of several. Train has at least one text of
    each class, and a row of each label and tag.

    With `group`, it is the rows of a group that are on the same side; dev has about `fraction` of each label.

    Raises:
        UserError: too few rows or groups for both sides; a row has no group.
    """
    contents = groups_of(examples, group) or [example.content for example in examples]
    different = len(set(contents))
    if group is not None:
        dev = _dev_groups(examples, fraction, seed, groups=contents)
    elif any(isinstance(example.answer, tuple) and isinstance(example, TextExample) for example in examples):
        dev = _dev_groups(examples, fraction, seed, groups=[example.query for example in examples])
    else:
        dev = _dev_rows(examples, fraction, seed, contents=[example.query for example in examples])
        dev = dev or _dev_rows(examples, fraction, seed, contents=contents)
        if not dev and 1 < different < len(examples):
            dev = _dev_rows(examples, fraction, seed, contents=_copies_apart(contents))
    if not dev:
        of = f"{different:,} of them different" if group is None else f"in {different:,} groups (task.group)"
        raise UserError(
            f"task.dev_fraction: {fraction:g} of {len(examples):,} rows, {of}, "
            "leaves none for evaluation (a row stays in training if no other there has its label or tag); "
            "raise it, or name a file in task.dev"
        )
    train = [example for number, example in enumerate(examples) if number not in dev]
    return train, [examples[number] for number in sorted(dev)]


def split_folds(examples: Sequence[Example], folds: int, seed: int, group: Column | None = None) -> list[int]:
    """The fold of each row, from 1. It depends on seed and content, not on the place of a row.

    Of each label, the rows in two folds differ by at most one if a row has one label with a name. Copies of a
    text are in one fold as far as this allows. Rows with other answers are divided by their texts (as in
    `split_dev`), and with `group` all rows are divided by their groups: no text or group is in two folds, and
    the shares of all labels are as even as that allows.

    Raises:
        UserError: fewer rows, texts or groups than folds; a row has no group.
    """
    keys, what = groups_of(examples, group), "groups (task.group)"
    if keys is None:
        keys, what = [example.query for example in examples], "different texts"
        if len(set(keys)) < folds:
            keys = [example.content for example in examples]
        has_classes = all(isinstance(example.answer, str) for example in examples)
        if has_classes and len(examples) >= folds:
            return _even_folds(examples, folds, seed)
    if (number := len(set(keys))) < folds:
        raise UserError(
            f"folds: {folds} folds need {folds} {what} or more, and {len(examples):,} rows have {number:,}: "
            "lower folds"
        )
    sides = _even_sides(examples, keys, [1 / folds] * folds, seed=seed)
    return [sides[key] + 1 for key in keys]


def groups_of(examples: Sequence[Example], column: Column | None) -> list[Texts] | None:
    """The value of each row in the column of `task.group`; None: the config names none.

    A number is that of a column of the first row: objects of JSON may have their keys in any order.

    Raises `UserError` for a row without this column, or without a value in it.
    """
    if column is None:
        return None
    first = list(examples[0].columns) if examples else []
    name = column if isinstance(column, str) else first[column] if column < len(first) else None
    return [_group(example, name, column) for example in examples]


def _group(example: Example, name: str | None, column: Column) -> Texts:
    names = list(example.columns)
    if name is None or name not in names:
        there = ", ".join(map(repr, names)) or "none, since the file is no table"
        raise UserError(f"{example.where}: task.group: no column {column!r}; its columns: {there}")
    value = example.columns[name]
    if value is None or not str(value).strip():
        raise UserError(
            f"{example.where}: task.group: the column {name!r} is empty; write the group of this row there, "
            "or a value that no other row has"
        )
    return (one_spelling(str(value).strip()),)


def _dev_rows(examples: Sequence[Example], fraction: float, seed: int, contents: Sequence[Texts]) -> set[int]:
    """The numbers of the rows for dev; rows of equal content are on the same side."""
    groups: dict[Texts, list[int]] = defaultdict(list)
    for number, content in enumerate(contents):
        groups[content].append(number)
    classes: dict[str, list[Texts]] = defaultdict(list)
    for content, numbers in groups.items():
        answers = [examples[number].answer for number in numbers]
        classes[min(answer if isinstance(answer, str) else "" for answer in answers)].append(content)
    labels = {content: {label for i in own for label in examples[i].names} for content, own in groups.items()}
    left = Counter(label for own in labels.values() for label in own)

    dev: set[int] = set()
    seen = 0
    for name in sorted(classes):
        contents = sorted(classes[name], key=lambda content: _draw(seed, content))
        seen += sum(len(groups[content]) for content in contents)
        target = round(fraction * seen)
        for content in contents[:-1]:
            fits = len(dev) + len(groups[content]) <= target
            if fits and all(left[label] > 1 for label in labels[content]):
                dev.update(groups[content])
                left.subtract(labels[content])
    return dev


def _copies_apart(contents: Sequence[Texts]) -> list[Texts]:
    """Each content with its number among its copies."""
    copies: dict[Texts, Iterator[int]] = defaultdict(lambda: itertools.count(1))
    return [(*content, str(next(copies[content]))) for content in contents]


def _dev_groups(examples: Sequence[Example], fraction: float, seed: int, groups: Sequence[Texts]) -> set[int]:
    """The numbers of the rows for dev; each label stays in a group that is learned from."""
    sides = _even_sides(examples, groups, [1 - fraction, fraction], seed=seed)
    labels = _labels_of(examples, groups)
    left = Counter(label for key, own in labels.items() if not sides[key] for label in own)
    for key in sorted(sides, key=lambda key: _draw(seed, key)):
        if sides[key] and not all(left[label] for label in labels[key]):
            sides[key] = 0
            left.update(labels[key].keys())
    return {number for number, key in enumerate(groups) if sides[key]}


Labels = Counter[str | None]
"""How often each label occurs in some rows; None stands for the row itself."""


def _labels_of(examples: Sequence[Example], keys: Sequence[Texts]) -> Mapping[Texts, Labels]:
    labels: dict[Texts, Labels] = defaultdict(Labels)
    for example, key in zip(examples, keys, strict=True):
        labels[key].update([None, *example.names])
    return labels


def _even_sides(
    examples: Sequence[Example], keys: Sequence[Texts], shares: Sequence[float], seed: int
) -> dict[Texts, int]:
    """The side of each key, from 0, so that each side has nearly its share of each label and of the rows.

    Few keys are placed many times in other orders: the best result is that with the least deviation, as
    scikit-learn's StratifiedGroupKFold measures it, the mean over labels.
    """
    labels = _labels_of(examples, keys)
    attempts = range(1 + min(_MOST_ORDERS, _PLACED // len(labels)))
    found = (_placed(labels, shares, seed=seed, largest_first=not n, draw=n) for n in attempts)
    return min(found, key=lambda each: each[0])[1]


def _placed(
    labels: Mapping[Texts, Labels], shares: Sequence[float], seed: int, largest_first: bool, draw: int
) -> tuple[float, dict[Texts, int]]:
    """The deviation, and the side of each key.

    The keys go one by one to the side where the squared errors of the shares grow least. Each may then move,
    as long as this makes them smaller.
    """
    total = Labels()
    for own in labels.values():
        total.update(own)
    weight = {label: 1.0 if label is not None else _WEIGHT_OF_ROWS for label in total}
    counts = [Labels() for _ in shares]
    sides: dict[Texts, int] = {}

    def growth(key: Texts, side: int) -> float:
        return (
            math.fsum(
                weight[label]
                * n
                * (n + 2 * (counts[side][label] - shares[side] * total[label]))
                / total[label] ** 2
                for label, n in labels[key].items()
            )
            / shares[side]
        )

    def size(key: Texts) -> int:
        return -labels[key][None] if largest_first else 0

    order = sorted(labels, key=lambda key: (size(key), _draw(seed, (*key, str(draw)))))
    for _ in range(_ROUNDS):
        moved = False
        for key in order:
            before = sides.get(key)
            if before is not None:
                counts[before].subtract(labels[key])
            costs = [growth(key, side) for side in range(len(shares))]
            best = costs.index(min(costs))
            if before is not None and costs[best] > costs[before] - 1e-9:
                best = before
            sides[key] = best
            counts[best].update(labels[key])
            moved |= best != before
        if not moved:
            break
    squares = {
        label: math.fsum(
            (n[label] / all_ - share) ** 2 / share for n, share in zip(counts, shares, strict=True)
        )
        for label, all_ in total.items()
    }
    return math.fsum(weight[label] * math.sqrt(each) for label, each in squares.items()), sides


def _even_folds(examples: Sequence[Example], folds: int, seed: int) -> list[int]:
    """The fold of each row, from 1; each fold has a fixed number of rows of each label.

    Copies of a text are placed first, in the fold with the most room; those that have no room together are
    placed one by one at the end.
    """
    room: dict[str, Counter[int]] = {}
    first = 0
    for label, count in sorted(Counter(str(example.answer) for example in examples).items()):
        room[label] = Counter(number % folds for number in range(first, first + count))
        first += count
    copies: dict[Texts, list[int]] = defaultdict(list)
    for number, example in enumerate(examples):
        copies[example.content].append(number)
    waiting = sorted(copies.values(), key=lambda own: (-len(own), _draw(seed, examples[own[0]].content)))
    found = [0] * len(examples)
    for numbers in waiting:  # it grows
        needed = Counter(str(examples[number].answer) for number in numbers)
        fitting = [fold for fold in range(folds) if all(room[each][fold] >= n for each, n in needed.items())]
        if not fitting:
            waiting += [[number] for number in numbers]
            continue
        fold = max(fitting, key=lambda fold: sum(room[label][fold] for label in needed))
        for number in numbers:
            room[str(examples[number].answer)][fold] -= 1
            found[number] = fold + 1
    return found


def _draw(seed: int, content: Texts) -> bytes:
    return hashlib.blake2b("\0".join((str(seed), *content)).encode(), digest_size=16).digest()
