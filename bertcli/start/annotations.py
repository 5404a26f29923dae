"""Columns as programs for annotation write them, which cannot be read yet -> what they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bertcli.errors import UserError
from bertcli.start.columns import Column
from bertcli.start.lists import Tagged, tagged_columns

_STARTS, _ENDS = ("start", "start_offset", "begin"), ("end", "end_offset")
_DECISIONS = frozenset(("accept", "reject", "ignore"))
_WORDS = (
    "write them as a list of words and a list of their tags in each row, "
    '{"tokens": ["Mia", "sleeps"], "tags": ["B-PER", "O"]}, or in CoNLL\'s form'
)
_CORPUS = ". To pretrain on the texts alone: --for pretrain"


def refuse_unreadable(path: Path, columns: Sequence[Column]) -> None:
    """Raise `UserError` for labels that no task can read: it says what they are, and how to write them."""
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
    """What a column holds that cannot be read."""
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
    """Whether this is [0, 3, "PER"], or an object with the places of its first and last character."""
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
