"""The task of a labeled file: the keys of a config's `task`, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bertcli.advice.init.columns import Column, columns_of, label_columns, pair_columns, text_column
from bertcli.advice.init.files import Seen
from bertcli.advice.init.lists import (
    Tagged,
    choice_columns,
    choice_texts,
    first_choice,
    flag_columns,
    hot_labels,
    list_label,
    question_column,
    refuse_unreadable,
    tagged_columns,
)
from bertcli.advice.init.tables import FORMATS, SOME_ROWS, TableLook, TaskLook, read_table, task_of_format
from bertcli.config.yaml_text import scalar
from bertcli.system.errors import UserError
from bertcli.tasks.label_cells import one_spelling, separator_of
from bertcli.tasks.labels import mark_of_no_label

_FEW_VALUES = 20
"""Largest number of different whole numbers that are classes; a label with more of them is a measure."""
_SHOWN = 5
_NO_LABELS = "To pretrain on the texts alone, write them to a plain text file, a blank line between two"


def find_task(seen: Seen) -> TaskLook:
    """The task of a file. Raises `UserError` if the file shows none."""
    if seen.kind in FORMATS:
        return task_of_format(seen)
    table = read_table(seen)
    columns = columns_of(table.rows)
    if len(columns) < 2:
        raise UserError(f"{seen.path}: has one column; expected a text and its label. {_NO_LABELS}")
    refuse_unreadable(seen.path, columns)
    if (tagged := tagged_columns(columns)) is not None:
        return _joined(*_tagged_words(tagged), table, seen=seen)
    if found := _questions(columns) or _multiple_choice(columns):
        return _joined(*found, table, seen=seen)
    names = {column.name.lower() for column in columns}
    if {"question", "context", "answers"} <= names and seen.kind in ("jsonl", "parquet"):
        raise UserError(
            f"{seen.path}: holds questions with answers, but not where in the context they begin; expected "
            '"answers": {"text": [...], "answer_start": [...]}, in characters, or SQuAD JSON'
        )
    return _joined(*_labeled_texts(columns, table, seen), table, seen=seen)


def can_be_labeled(seen: Seen) -> bool:
    """True if JSON lines or Parquet hold a label beside a text.

    The label is known by its name or form, or as the only other column. Raises `UserError` for labels that
    cannot be read.
    """
    columns = columns_of(read_table(seen, SOME_ROWS).rows)
    refuse_unreadable(seen.path, columns)
    if tagged_columns(columns) or list_label(columns) or _multiple_choice(columns):
        return True
    if question_column(columns) or {"question", "context", "answers"} <= {each.name for each in columns}:
        return True
    text = text_column(columns)
    if text is None:
        return False
    labels = label_columns(columns, [text])
    is_label = bool(labels) and (labels[0].is_named_label or (len(columns) == 2 and not labels[0].is_other))
    return is_label or bool(flag_columns(columns))


def doubtful_columns(seen: Seen) -> list[str]:
    """The columns of JSON lines or Parquet, taken as a corpus, that may be labels by name or form."""
    columns = columns_of(read_table(seen, SOME_ROWS).rows)
    return [
        column.name
        for column in columns
        if not column.is_other
        and not column.is_text
        and (column.is_named_label or any(isinstance(value, list | dict) for value in column.values))
    ]


def _tagged_words(tagged: Tagged) -> tuple[dict[str, Any], dict[str, str]]:
    keys = {"type": "token-classification", "text": tagged.words.name, "label": tagged.tags.name}
    comments = {"type": "words and a tag for each of them in each row"}
    if tagged.kind == "plain":
        keys["tag_scheme"] = "plain"
        comments["tag_scheme"] = "the tags are names, each of one word"
    if tagged.others:
        comments["label"] = f"or {_names(tagged.others)}"
    return keys, comments


def _questions(columns: Sequence[Column]) -> tuple[dict[str, Any], dict[str, str]] | None:
    names = {column.name for column in columns}
    answers = question_column(columns)
    if answers is None or not {"question", "context"} <= names:
        return None
    keys: dict[str, Any] = {"type": "question-answering"}
    if answers.name != "answers":
        keys["label"] = answers.name
    return keys, {"type": "questions, their contexts, and answers with their places"}


def _joined(keys: dict[str, Any], comments: dict[str, str], table: TableLook, seen: Seen) -> TaskLook:
    made_up = "; the names of the labels are made up: see label_names" if "label_names" in keys else ""
    return TaskLook(
        {"type": keys.pop("type"), **table.keys, **keys},
        table.comments | comments,
        f"{table.how}{made_up}",
    )


def _multiple_choice(columns: Sequence[Column]) -> tuple[dict[str, Any], dict[str, str]] | None:
    choices = choice_columns(columns)
    others = [column for column in columns if column not in choices]
    can = [each for each in others if (each.is_named_label or each.is_number) and not each.is_other]
    found = ((each, first_choice(each, choices)) for each in can if choices)
    label, numbering = next(((label, first) for label, first in found if first is not None), (None, None))
    others = [column for column in others if column is not label]
    texts = choice_texts(others)
    if not texts or label is None or numbering is None:
        return None
    names = [column.name for column in texts]
    keys: dict[str, Any] = {"type": "multiple-choice", "text": names[0] if len(names) == 1 else names}
    keys["choices"] = choices[0].name if len(choices) == 1 else [column.name for column in choices]
    keys["label"] = label.name
    what = "a list of choices" if len(choices) == 1 else f"{len(choices)} columns of choices"
    comments = {"type": f"{' and '.join(names)}, {what}, and which of them is right"}
    first, why = numbering
    is_unclear = first == 0 and _numbers_among(choices)
    if first is not None and (first or why or is_unclear):
        keys["first_choice"] = first
        comments["first_choice"] = why or "the labels count the choices from 0"
    further = [column for column in others if column.is_text and column not in texts]
    if further:
        comments["text"] = f"the likeliest; not read: {_names(further)}"
    return keys, comments


def _numbers_among(choices: Sequence[Column]) -> bool:
    """True if the text of a choice is a number, which could also be the number of a choice."""
    rows = (row for each in choices for row in each.lists or [each.values])
    return any(str(item).isdecimal() for row in rows for item in row)


def _labeled_texts(
    columns: Sequence[Column], table: TableLook, seen: Seen
) -> tuple[dict[str, Any], dict[str, str]]:
    """The keys of a classification or regression of a text or a pair, and their comments."""
    pair = pair_columns(columns, table.is_named)
    text = text_column(columns)
    if text is None:
        raise UserError(
            f"{seen.path}: no column holds texts; its columns: {', '.join(c.name for c in columns)}. Write a "
            "config by hand: bertcli config finetune > mine.yaml"
        )
    texts = pair or (text,)
    comments = {}
    keys: dict[str, Any] = {"text": [each.name for each in pair] if pair else text.name}
    others = [each for each in columns if each.is_text and each not in texts]
    if pair:
        comments["text"] = f"two texts that make a pair; or {scalar(text.name)} alone"
    elif others:
        comments["text"] = (
            f"the likeliest; or {_names(others)}; or a pair: {scalar([text.name, others[0].name])}"
        )
    several = list_label(columns)
    flags = flag_columns([each for each in columns if each not in texts]) if table.is_named else []
    labels = label_columns(columns, texts)
    if several is not None:
        given = _list_of_labels(several)
    elif flags:
        given = (
            {"label": [each.name for each in flags]},
            {"label": "0 or 1 in a column for each; or one of them"},
        )
    elif labels:
        given = _one_column(labels)
    else:
        raise UserError(
            f"{seen.path}: no column holds labels (few different values, or numbers) beside the text in "
            f"{text.name!r}; its columns: {', '.join(c.name for c in columns)}. {_NO_LABELS}"
        )
    return {"type": "classification"} | keys | given[0], comments | given[1]


def _list_of_labels(label: Column) -> tuple[dict[str, Any], dict[str, str]]:
    keys: dict[str, Any] = {"label": label.name, "multi_label": True}
    if (labels := hot_labels(label)) == 0:
        return keys, {"multi_label": "each row has a list of labels"}
    keys["label_names"] = [f"label{number}" for number in range(labels)]
    why = "made up: the file has a 0 or 1 for each of them, and no names; put theirs here, in this order"
    return keys, {"label_names": why}


def _one_column(labels: Sequence[Column]) -> tuple[dict[str, Any], dict[str, str]]:
    """The keys for the type of the task and its label, the first of these columns; and their comments."""
    label = labels[0]
    keys: dict[str, Any] = {"label": label.name}
    comments = {}
    if len(labels) > 1 and not label.is_named_label:
        comments["label"] = f"the likeliest; or {_names(labels[1:4])}"
    keys["type"], comments["type"] = _kind_of_label(label)
    if keys["type"] != "classification":
        return keys, comments
    values = [one_spelling(str(value).strip()) for value in label.values]
    if not label.is_number and (separator := separator_of(values)) is not None:
        keys["multi_label"] = True
        comments["multi_label"] = (
            f"{separator!r} stands between labels that also stand alone; false: one a row"
        )
        if separator != ",":
            keys["label_separator"] = separator
    if (mark := mark_of_no_label(values)) is not None:
        keys["skip_labels"] = [mark]
        comments["skip_labels"] = "it usually says that a row has no label; or []: learn it as one"
    return keys, comments


def _names(columns: Sequence[Column]) -> str:
    """The names of the columns, as a config has them."""
    return ", ".join(scalar(column.name) for column in columns)


def _kind_of_label(label: Column) -> tuple[str, str]:
    """The type of the task, and the reason."""
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
