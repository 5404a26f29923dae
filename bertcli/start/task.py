"""A labeled file -> the task that it is for: the keys of a config's `task`, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bertcli.config.yaml_text import scalar
from bertcli.errors import UserError
from bertcli.start.columns import (
    Column,
    choice_columns,
    columns_of,
    label_columns,
    list_label,
    pair_columns,
    tagged_columns,
    text_column,
)
from bertcli.start.files import Seen
from bertcli.start.formats import FORMATS, TaskLook, task_of_format
from bertcli.start.tables import SOME_ROWS, TableLook, read_table

_FEW_VALUES = 20
"""Whole numbers of which a label has at most as many different ones are classes, not measures."""
_SHOWN = 5
_NO_LABELS = "To pretrain on the texts alone, write them to a plain text file, a blank line between two"


def find_task(seen: Seen) -> TaskLook:
    """The task of a file. Raises `UserError` where no task can be read in it."""
    if seen.kind in FORMATS:
        return task_of_format(seen)
    table = read_table(seen)
    columns = columns_of(table.rows)
    if len(columns) < 2:
        raise UserError(f"{seen.path}: has one column; expected a text and its label. {_NO_LABELS}")
    if (tagged := tagged_columns(columns)) is not None:
        words, tags = tagged
        given = {"type": "token-classification", "text": words.name, "label": tags.name}
        comments = {"type": "a list of words and a list of their tags in each row"}
        return _joined(given, comments, table, seen=seen)
    if (choices := choice_columns(columns)) and (found := _multiple_choice(columns, choices)):
        return _joined(*found, table, seen=seen)
    names = {column.name.lower() for column in columns}
    if {"question", "context", "answers"} <= names and seen.kind in ("jsonl", "parquet"):
        raise UserError(
            f"{seen.path}: holds questions with answers, which are read from SQuAD JSON: write it as "
            '{"data": [{"paragraphs": [{"context": ..., "qas": [...]}]}]}'
        )
    return _joined(*_labeled_texts(columns, table, seen), table, seen=seen)


def can_be_labeled(seen: Seen) -> bool:
    """Whether JSON lines or Parquet hold a label beside a text: by its name, or as the only other column."""
    columns = columns_of(read_table(seen, SOME_ROWS).rows)
    if tagged_columns(columns) or choice_columns(columns) or list_label(columns):
        return True
    text = text_column(columns)
    if text is None:
        return False
    labels = label_columns(columns, [text])
    return bool(labels) and (labels[0].is_named_label or (len(columns) == 2 and not labels[0].is_other))


def _joined(keys: dict[str, Any], comments: dict[str, str], table: TableLook, seen: Seen) -> TaskLook:
    return TaskLook(
        {"type": keys.pop("type"), **table.keys, **keys},
        table.comments | comments,
        f"{len(table.rows):,} rows, {table.how}",
    )


def _multiple_choice(
    columns: Sequence[Column], choices: Sequence[Column]
) -> tuple[dict[str, Any], dict[str, str]] | None:
    others = [column for column in columns if column not in choices]
    text = text_column(others)
    labels = [
        column
        for column in others
        if column is not text and (column.is_named_label or column.is_number) and not column.is_other
    ]
    label = next((column for column in labels if _names_a_choice(column, choices)), None)
    if text is None or label is None:
        return None
    given = choices[0].name if len(choices) == 1 else [column.name for column in choices]
    keys = {"type": "multiple-choice", "text": text.name, "choices": given, "label": label.name}
    what = "a list of choices" if len(choices) == 1 else f"{len(choices)} columns of choices"
    return keys, {"type": f"{text.name}, {what}, and which of them is right"}


def _names_a_choice(column: Column, choices: Sequence[Column]) -> bool:
    """Whether the values number the choices from 0, or are their texts."""
    most = len(choices) if len(choices) > 1 else min(len(value) for value in choices[0].values)
    if column.is_number:
        return all(number in range(most) for number in column.numbers)
    texts = {str(value) for each in choices for value in each.values}
    return len(choices) > 1 and all(str(value) in texts for value in column.values)


def _labeled_texts(
    columns: Sequence[Column], table: TableLook, seen: Seen
) -> tuple[dict[str, Any], dict[str, str]]:
    """Classification or regression of a text or a pair."""
    pair = pair_columns(columns, table.is_named)
    text = text_column(columns)
    if text is None:
        raise UserError(
            f"{seen.path}: no column holds texts; its columns: {', '.join(c.name for c in columns)}. Write a "
            "config by hand: bertcli config finetune > mine.yaml"
        )
    texts = pair or (text,)
    comments = {}
    keys: dict[str, Any] = {"type": "", "text": [each.name for each in pair] if pair else text.name}
    others = [each for each in columns if each.is_text and each not in texts]
    if pair:
        comments["text"] = f"two texts that make a pair; or {scalar(text.name)} alone"
    elif others:
        comments["text"] = (
            f"the likeliest; or {_names(others)}; or a pair: {scalar([text.name, others[0].name])}"
        )
    several = list_label(columns)
    labels = label_columns(columns, texts)
    if several is not None:
        keys |= {"type": "classification", "label": several.name, "multi_label": True}
        comments["multi_label"] = "each row has a list of labels"
        return keys, comments
    if not labels:
        raise UserError(
            f"{seen.path}: no column holds labels (few different values, or numbers) beside the text in "
            f"{text.name!r}; its columns: {', '.join(c.name for c in columns)}. {_NO_LABELS}"
        )
    label = labels[0]
    keys["label"] = label.name
    if len(labels) > 1 and not label.is_named_label:
        comments["label"] = f"the likeliest; or {_names(labels[1:4])}"
    keys["type"], comments["type"] = _kind_of_label(label)
    if keys["type"] == "classification" and not label.is_number and _is_several(label):
        keys["multi_label"] = True
        comments["multi_label"] = "labels have commas between labels that also stand alone; false: one a row"
    return keys, comments


def _names(columns: Sequence[Column]) -> str:
    """As a config has them."""
    return ", ".join(scalar(column.name) for column in columns)


def _kind_of_label(label: Column) -> tuple[str, str]:
    """The type of the task, and why."""
    if label.is_number:
        whole = all(number.is_integer() for number in label.numbers)
        low, high = min(label.numbers), max(label.numbers)
        if not whole or label.distinct > _FEW_VALUES:
            return "regression", f"{label.name} holds numbers from {low:g} to {high:g}"
        if label.distinct > 2:
            return (
                "classification",
                f"{label.name} holds {label.distinct} whole numbers; or regression, if they are measures",
            )
    values = sorted({str(value) for value in label.values})
    shown = ", ".join(values[:_SHOWN]) + (", ..." if len(values) > _SHOWN else "")
    return "classification", f"{label.name} has {len(values)} values: {shown}"


def _is_several(label: Column) -> bool:
    """Whether values are several labels with commas between them."""
    values = [str(value) for value in label.values]
    with_commas = [value for value in values if "," in value]
    parts = {part.strip() for value in with_commas for part in value.split(",")}
    alone = {value.strip() for value in values if "," not in value}
    return 20 * len(with_commas) > len(values) and 2 * len(parts & alone) >= len(parts)
