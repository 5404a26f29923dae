"""The examples of one file -> training and evaluation examples."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TypeVar

from bertcli.errors import UserError
from bertcli.examples.examples import Example, QuestionExample, TaggedExample, TextExample

Labeled = TypeVar("Labeled", bound=Example)


def split_dev(examples: Sequence[Labeled], fraction: float, seed: int) -> tuple[list[Labeled], list[Labeled]]:
    """(train, dev), each in the order of the file; about `fraction` of the rows are dev.

    The split depends on seed and content, not on the place of a row. Rows of the same text (questions about
    the same context) are on the same side. So are pairs of the same first text that may be ranked, unless
    there are too few first texts. Where so few texts are repeated so often that dev would be empty, copies
    of a text are on both sides. Dev has `fraction` of each class. Train has at least one text of each class,
    and a row of each label and tag.

    Raises:
        UserError: too few rows for both sides.
    """
    contents = [_content(example) for example in examples]
    different = len(set(contents))
    dev = _dev_rows(examples, fraction, seed, contents=[_query(example) for example in examples])
    dev = dev or _dev_rows(examples, fraction, seed, contents=contents)
    if not dev and 1 < different < len(examples):
        dev = _dev_rows(examples, fraction, seed, contents=_copies_apart(contents))
    if not dev:
        raise UserError(
            f"task.dev_fraction: {fraction:g} of {len(examples):,} rows, {different:,} of them different, "
            "leaves none for evaluation (a row stays in training if no other there has its label or tag); "
            "raise it, or name a file in task.dev"
        )
    return [e for i, e in enumerate(examples) if i not in dev], [
        e for i, e in enumerate(examples) if i in dev
    ]


def _dev_rows(
    examples: Sequence[Example], fraction: float, seed: int, contents: Sequence[tuple[str, ...]]
) -> set[int]:
    """The numbers of the rows for dev; rows of equal content are on the same side."""
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, content in enumerate(contents):
        groups[content].append(number)
    classes: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for content, numbers in groups.items():
        classes[min(_class(examples[i]) for i in numbers)].append(content)
    labels = {
        content: {label for i in own for label in _labels(examples[i])} for content, own in groups.items()
    }
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


def _query(example: Example) -> tuple[str, ...]:
    """The first text of a pair with a number, or with any number of labels; else `_content`."""
    if isinstance(example, TextExample) and example.text_b is not None and not isinstance(example.label, str):
        return (example.text_a,)
    return _content(example)


def _content(example: Example) -> tuple[str, ...]:
    return (example.context,) if isinstance(example, QuestionExample) else example.texts


def _copies_apart(contents: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Each content with its number among its copies."""
    seen: Counter[tuple[str, ...]] = Counter()
    apart = []
    for content in contents:
        seen[content] += 1
        apart.append((*content, str(seen[content])))
    return apart


def _class(example: Example) -> str:
    """The label; for tasks without one label a row, all rows are in one class."""
    label = example.label if isinstance(example, TextExample) else None
    return label if isinstance(label, str) else ""


def _labels(example: Example) -> tuple[str, ...]:
    """What the model can learn from training examples alone: labels, and tags of words."""
    if isinstance(example, TaggedExample):
        return example.tags or ()
    label = example.label if isinstance(example, TextExample) else None
    if isinstance(label, tuple):
        return label
    return (label,) if isinstance(label, str) else ()


def _draw(seed: int, content: tuple[str, ...]) -> bytes:
    return hashlib.blake2b("\0".join((str(seed), *content)).encode(), digest_size=16).digest()
