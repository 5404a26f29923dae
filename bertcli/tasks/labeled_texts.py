"""Texts and their labels as files hold them -> the keys of classification or regression."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from bertcli.config.task import LABEL_LINES, TaskSettings
from bertcli.config.yaml_text import scalar
from bertcli.tasks.columns import (
    Column,
    Recognized,
    Sample,
    label_columns,
    names_of,
    pair_columns,
    text_column,
)
from bertcli.tasks.label_cells import is_flag, one_spelling, separator_of
from bertcli.tasks.labels import mark_of_no_label
from bertcli.tasks.rows import open_label_lines
from bertcli.tasks.table import LabeledFile, Row

_FEW_VALUES = 20
"""Largest number of different whole numbers that are classes; a label with more of them is a measure."""
_SHOWN = 5
_MOST_LINES = 100_000
"""Number of lines with labels that are read to recognize their task."""

Found = tuple[dict[str, Any], dict[str, str]]
"""Keys of `task`, and their comments."""


def recognize_classes(sample: Sample) -> Recognized | None:
    """The keys of `task` for texts with classes, also in lines of fastText or TREC; None for other files."""
    if sample.format in LABEL_LINES:
        return _fasttext(sample) if sample.format == "fasttext" else _trec(sample)
    return _labeled_texts(sample, "classification")


def recognize_numbers(sample: Sample) -> Recognized | None:
    """The keys of `task` for texts with numbers that are measures; None for other files."""
    return _labeled_texts(sample, "regression")


def may_be_labeled_texts(sample: Sample) -> bool:
    """True if a label stands beside a text; it is known by its name or form, or as the only other column."""
    columns = sample.columns
    if _list_label(columns):
        return True
    text = text_column(columns)
    if text is None:
        return False
    labels = label_columns(columns, [text])
    is_label = bool(labels) and (labels[0].is_named_label or (len(columns) == 2 and not labels[0].is_other))
    return is_label or bool(_flag_columns(columns))


def _labeled_texts(sample: Sample, type: str) -> Recognized | None:
    """The keys for columns of texts, or pairs, and of labels that make a task of this type."""
    columns = sample.columns
    pair = pair_columns(columns, sample.is_named)
    text = text_column(columns)
    texts = pair or (() if text is None else (text,))
    found = _label(sample, texts)
    if text is None or found is None or found[0]["type"] != type:
        return None
    comments = {}
    keys: dict[str, Any] = {"text": [each.name for each in pair] if pair else text.name}
    others = [each for each in columns if each.is_text and each not in texts]
    if pair:
        comments["text"] = f"two texts that make a pair; or {scalar(text.name)} alone"
    elif others:
        comments["text"] = (
            f"the likeliest; or {names_of(others)}; or a pair: {scalar([text.name, others[0].name])}"
        )
    made_up = "the names of the labels are made up: see label_names" if "label_names" in found[0] else ""
    return Recognized(keys | found[0], comments | found[1], made_up)


def _label(sample: Sample, texts: Sequence[Column]) -> Found | None:
    """The keys for the label of these texts, and for the type of the task; None: there is no label."""
    columns = sample.columns
    if (several := _list_label(columns)) is not None:
        return _list_of_labels(several)
    if sample.is_named and (flags := _flag_columns([each for each in columns if each not in texts])):
        keys = {"type": "classification", "label": [each.name for each in flags]}
        return keys, {"label": "0 or 1 in a column for each; or one of them"}
    labels = label_columns(columns, texts)
    return _one_column(labels) if labels else None


def _list_label(columns: Sequence[Column]) -> Column | None:
    """A column of lists of labels, with any number per row, or with a 0 or 1 for each label."""
    for column in columns:
        items = [item for each in column.lists or () for item in each]
        if not items or not all(isinstance(item, str | int | float) for item in items):
            continue
        is_repeated = len(set(items)) <= max(50, len(items) // 5)
        if _hot_labels(column) or (column.is_named_label and is_repeated):
            return column
    return None


def _hot_labels(column: Column) -> int:
    """The number of labels in lists that hold a 0 or 1 for each label; 0: they are other lists."""
    sizes = {len(each) for each in column.lists or ()}
    if (
        len(sizes) != 1
        or sizes < {2}
        or not all(is_flag(item) for each in column.lists or () for item in each)
    ):
        return 0
    return sizes.pop()


def _flag_columns(columns: Sequence[Column]) -> list[Column]:
    """Columns of 0 and 1, one for each label of a text; empty: there are none, or another column has the name
    of a label."""
    flags = [column for column in columns if column.is_flags and not column.is_other]
    named = [column for column in columns if column.is_named_label and column.can_be_label]
    is_one_label = any(column not in flags for column in named) or (len(flags) == 2 and named)
    return [] if is_one_label or sum(column.distinct > 1 for column in flags) < 2 else flags


def _list_of_labels(label: Column) -> Found:
    keys: dict[str, Any] = {"type": "classification", "label": label.name, "multi_label": True}
    if (labels := _hot_labels(label)) == 0:
        return keys, {"multi_label": "each row has a list of labels"}
    keys["label_names"] = [f"label{number}" for number in range(labels)]
    why = "made up: the file has a 0 or 1 for each of them, and no names; put theirs here, in this order"
    return keys, {"label_names": why}


def _one_column(labels: Sequence[Column]) -> Found:
    """The keys for the type of the task and its label, the first of these columns; and their comments."""
    label = labels[0]
    keys: dict[str, Any] = {"label": label.name}
    comments = {}
    if len(labels) > 1 and not label.is_named_label:
        comments["label"] = f"the likeliest; or {names_of(labels[1:4])}"
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


def _fasttext(sample: Sample) -> Recognized:
    rows = _format_rows(sample)
    several = sum(len(row.values["label"]) != 1 for row in rows)
    keys: dict[str, Any] = {"type": "classification", "format": "fasttext"}
    comments = {"type": "labels as in fastText: __label__NAME before each text"}
    if several:
        keys["multi_label"] = True
        comments["multi_label"] = (
            f"{several:,} of {len(rows):,} lines have several labels or none; false: one a line"
        )
    return Recognized(keys, comments, "lines of fastText")


def _trec(sample: Sample) -> Recognized:
    rows = _format_rows(sample)
    coarse, fine = ({row.values[name] for row in rows} for name in ("label", "fine"))
    keys = {"type": "classification", "format": "trec", "label": "label"}
    comments = {
        "type": "labels as in TREC: COARSE:fine before each text",
        "label": f"the first part: {len(coarse)} labels; or fine: both parts, {len(fine)} labels",
    }
    return Recognized(keys, comments, "lines of TREC")


def _format_rows(sample: Sample) -> list[Row]:
    keys = {"type": "classification", "format": sample.format, "multi_label": True, **sample.keys}
    file = LabeledFile(sample.path, TaskSettings.model_validate(keys))
    table = open_label_lines(file, sample.format)
    return [row for row in islice(table.rows, _MOST_LINES) if isinstance(row, Row)]
