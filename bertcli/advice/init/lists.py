"""Columns of lists, or columns that make a list: labels of a text, tags of words, choices."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bertcli.advice.init.columns import Column, numbered_groups, text_column
from bertcli.system.errors import UserError
from bertcli.tasks.label_cells import is_flag
from bertcli.tasks.tags import is_tag

_LIST_NAMES = ("choices", "endings", "options", "answers", "candidates")
_CHOICE_NAMES = ("choice", "ending", "option", "answer", "candidate", "sol", "")
_QUESTIONS = ("question", "query", "ask_for", "question_stem")
_MOST_TAGS = 100
"""Largest number of different tags, if the tags are plain names."""
_ORDER = ("bio", "numbers", "plain")


@dataclass(frozen=True)
class Tagged:
    """Columns of words and of their tags.

    Attributes:
        kind: bio: tags of a scheme; plain: names, such as parts of speech; numbers: tags without names.
        others: further columns of tags.
    """

    words: Column
    tags: Column
    kind: Literal["bio", "plain", "numbers"]
    others: tuple[Column, ...] = ()


def list_label(columns: Sequence[Column]) -> Column | None:
    """A column of lists of labels, with any number per row, or with a 0 or 1 for each label."""
    for column in columns:
        items = [item for each in column.lists or () for item in each]
        if not items or not all(isinstance(item, str | int | float) for item in items):
            continue
        is_repeated = len(set(items)) <= max(50, len(items) // 5)
        if hot_labels(column) or (column.is_named_label and is_repeated):
            return column
    return None


def hot_labels(column: Column) -> int:
    """The number of labels in lists that hold a 0 or 1 for each label; 0: they are other lists."""
    sizes = {len(each) for each in column.lists or ()}
    if (
        len(sizes) != 1
        or sizes < {2}
        or not all(is_flag(item) for each in column.lists or () for item in each)
    ):
        return 0
    return sizes.pop()


def flag_columns(columns: Sequence[Column]) -> list[Column]:
    """Columns of 0 and 1, one for each label of a text; empty: there are none, or another column has the name
    of a label."""
    flags = [column for column in columns if column.is_flags and not column.is_other]
    named = [column for column in columns if column.is_named_label and column.can_be_label]
    is_one_label = any(column not in flags for column in named) or (len(flags) == 2 and named)
    return [] if is_one_label or sum(column.distinct > 1 for column in flags) < 2 else flags


def tagged_columns(columns: Sequence[Column]) -> Tagged | None:
    """A column of words, and a column with a tag for each: lists, or texts with blanks between words.

    If several fit, columns named as entity tags come first, then tags of a scheme.
    """
    found = [
        Tagged(words, tags, kind)
        for tags in columns
        if (kind := _kind_of_tags(tags)) is not None
        for words in columns
        if words is not tags and _are_words_of(words, tags, kind)
    ]
    found.sort(key=lambda each: ("ner" not in each.tags.name.lower(), _ORDER.index(each.kind)))
    if not found:
        return None
    first = found[0]
    others = tuple(each.tags for each in found[1:] if each.words is first.words)
    return Tagged(first.words, first.tags, first.kind, others=others)


def _items(column: Column) -> list[list[Any]]:
    """The lists of a column, or the words of its texts; empty: it has neither."""
    if column.lists is not None:
        return column.lists
    return [value.split() for value in column.values] if column.is_string else []


def _kind_of_tags(column: Column) -> Literal["bio", "plain", "numbers"] | None:
    rows = _items(column)
    if max(map(len, rows), default=0) < 2 and column.lists is None:
        return None
    items = {item if isinstance(item, str | int) else None for each in rows for item in each}
    if all(isinstance(item, str) and is_tag(item) for item in items):
        return "bio" if column.lists is not None or any("-" in str(item) for item in items) else None
    if column.lists is None or (len({len(each) for each in rows}) < 2 and not column.is_named_label):
        return None
    if all(isinstance(item, int) for item in items):
        return "numbers"
    is_plain = all(isinstance(item, str) for item in items) and len(items) <= _MOST_TAGS
    return "plain" if is_plain else None


def _are_words_of(words: Column, tags: Column, kind: str) -> bool:
    """True if there is a tag for each word."""
    items, marks = _items(words), _items(tags)
    if len(items) != len(marks) or not all(len(a) == len(b) for a, b in zip(items, marks, strict=True)):
        return False
    if not all(isinstance(item, str) for each in items for item in each):
        return False
    if kind == "bio":
        return True
    is_list = words.lists is not None or len({len(each) for each in items}) > 1
    return is_list and (kind == "numbers" or _distinct(items) > _distinct(marks) or words.name < tags.name)


def _distinct(rows: Sequence[Sequence[Any]]) -> int:
    return len({item for each in rows for item in each})


def choice_columns(columns: Sequence[Column]) -> list[Column]:
    """A column of lists of choices, or a column for each choice; empty: there are no choices."""
    for column in columns:
        if column.name.lower() in _LIST_NAMES and column.lists and all(len(v) > 1 for v in column.lists):
            scalars = (isinstance(item, str | int | float) for value in column.lists for item in value)
            return [column] if all(scalars) else []
    filled = [column for column in columns if column.is_string and len(column.values) == column.rows]
    strings = [column for column in filled if not column.is_flags]
    groups = [group for group in numbered_groups(strings) if len(group) > 1]
    for group in sorted(groups, key=len, reverse=True):
        bare = re.sub(r"[^a-z]", "", group[0].name.lower())
        is_named = bare.removesuffix("a") in _CHOICE_NAMES
        if len(group) > 2 or is_named:
            return group
    return []


def choice_texts(columns: Sequence[Column]) -> list[Column]:
    """The columns to read before the choices: a text, a question, both with the text first, or neither."""
    question = next((c for c in columns if c.name.lower() in _QUESTIONS and c.is_string), None)
    if question is not None:
        context = text_column([column for column in columns if column is not question])
        return [question] if context is None else [context, question]
    strings = [column for column in columns if column.is_string and not column.is_number]
    for group in numbered_groups(strings):
        if len(group) == 2 and any(column.is_text for column in group):
            return group
    text = text_column(columns)
    return [] if text is None else [text]


def first_choice(label: Column, choices: Sequence[Column]) -> tuple[int | None, str] | None:
    """The number of the first choice, and how the label names choices; None: the label does not name them.

    The number is None if labels are letters, names of columns or texts.
    """
    if len(choices) == 1:
        rows = choices[0].lists or []
        sizes = [len(row) for row in rows]
    else:
        rows = [list(row) for row in zip(*(column.values for column in choices), strict=True)]
        sizes = [len(choices)] * len(rows)
    if len(sizes) != len(label.values) or not sizes:
        return None
    if label.is_number:
        numbers = label.numbers
        from_0 = all(number in range(size) for number, size in zip(numbers, sizes, strict=True))
        from_1 = all(number - 1 in range(size) for number, size in zip(numbers, sizes, strict=True))
        if from_0 and from_1:
            return 0, "no label tells whether the first choice is 0 or 1; or 1"
        return (0, "") if from_0 else (1, "the labels count the choices from 1") if from_1 else None
    texts = [str(value).strip() for value in label.values]
    letters, names = "ABCDEFGHIJ", [column.name for column in choices]
    is_right = (
        (len(text) == 1 and text.upper() in letters[:size])
        or (len(names) > 1 and text in names)
        or text in [str(item).strip() for item in row]
        for text, size, row in zip(texts, sizes, rows, strict=True)
    )
    return (None, "") if all(is_right) else None


_STARTS, _ENDS = ("start", "start_offset", "begin"), ("end", "end_offset")
_DECISIONS = frozenset(("accept", "reject", "ignore"))
_WORDS = (
    "write them as a list of words and a list of their tags in each row, "
    '{"tokens": ["Mia", "sleeps"], "tags": ["B-PER", "O"]}, or in CoNLL\'s form'
)
_CORPUS = ". To pretrain on the texts alone: --for pretrain"


def refuse_unreadable(path: Path, columns: Sequence[Column]) -> None:
    """Raise `UserError` for labels that no task can read; it says what they are and how to write them."""
    problem = next(filter(None, map(_problem, columns)), None)
    tagged = None if problem else tagged_columns(columns)
    if tagged is not None and tagged.kind == "numbers":
        problem = _numbers(tagged)
    names = {column.name for column in columns}
    if problem is None and {"data", "annotations"} <= names:
        problem = f"is an export of Label Studio, which cannot be read yet; for entities, {_WORDS}"
    if problem is not None:
        raise UserError(f"{path}: {problem}{_CORPUS if any(column.is_string for column in columns) else ''}")


def question_column(columns: Sequence[Column]) -> Column | None:
    """The column of answers with their places in the context, as in SQuAD."""
    return next((c for c in columns if c.values and all(map(_is_answers, c.values))), None)


def _is_answers(value: Any) -> bool:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return False
    if isinstance(value, list):
        return all(isinstance(each, dict) and {"text", "answer_start"} <= each.keys() for each in value)
    return isinstance(value, dict) and {"text", "answer_start"} <= value.keys()


def _problem(column: Column) -> str | None:
    """The problem with a column that cannot be read; None: there is none."""
    name = repr(column.name)
    if {str(value) for value in column.values} <= _DECISIONS and column.distinct > 1:
        return (
            f"the column {name} holds decisions of Prodigy (accept, reject), which cannot be read yet: keep "
            "the rows that are accepted, and delete this column"
        )
    items = [item for value in column.values if isinstance(value, list) for item in value]
    if items and column.name != "tokens" and all(map(_is_span, items)):
        return (
            f"the column {name} holds spans of characters, as doccano, Prodigy and Label Studio write them, "
            f"which cannot be read yet; {_WORDS}"
        )
    if items and all(isinstance(item, dict) and "question" in item for item in items):
        return (
            f"the column {name} holds questions about a text, which are read from SQuAD JSON: write it as "
            '{"data": [{"paragraphs": [{"context": ..., "qas": [...]}]}]}'
        )
    return None


def _is_span(item: Any) -> bool:
    """True if this is a span: [0, 3, "PER"], or an object with the places of its first and last character."""
    if isinstance(item, list):
        return len(item) == 3 and [type(each) for each in item] == [int, int, str]
    keys = item.keys() if isinstance(item, dict) else ()
    return any(key in keys for key in _STARTS) and any(key in keys for key in _ENDS)


def _numbers(tagged: Tagged) -> str:
    words, tags = tagged.words.name, tagged.tags.name
    most = max(item for each in tagged.tags.lists or () for item in each)
    return (
        f"{tags!r} holds a number for each word of {words!r}, and the file does not say what they mean. "
        "Write a config by hand (bertcli config finetune > mine.yaml) with task.type: token-classification, "
        f"task.text: {words}, task.label: {tags} and task.label_names: [O, B-PER, ...], the name of each "
        f"number from 0 to {most}"
    )
