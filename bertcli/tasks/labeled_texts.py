"""Texts and their labels as files hold them -> the keys of classification or regression."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from bertcli.config.task import LABEL_LINES, TaskSettings
from bertcli.config.yaml_text import scalar
from bertcli.tasks.columns import Column, Recognized, Sample, label_columns, names_of, text_column, text_pair
from bertcli.tasks.label_cells import flags_of, is_flag, separator_of
from bertcli.tasks.labels import mark_of_no_label
from bertcli.tasks.rows import open_label_lines
from bertcli.tasks.table import LabeledFile, Row, one_spelling

_FEW_VALUES = 20
"""Largest number of different whole numbers that are classes; a label with more of them is a measure."""
_FILLED = 0.9
"""Least share of the rows with a 0 or 1 in another column that a column of a further label has."""
_SHOWN = 5
_MOST_LINES = 100_000
"""Number of lines with labels that are read to recognize their task."""


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
    pair = text_pair(columns, sample.is_named)
    text = text_column(columns)
    texts = pair or (() if text is None else (text,))
    found = _label(sample, texts)
    if text is None or found is None or found.keys["type"] != type:
        return None
    keys = {"text": [each.name for each in pair] if pair else text.name}
    others = [each for each in columns if each.is_text and each not in texts]
    if pair:
        found.comments["text"] = f"two texts that make a pair; or {scalar(text.name)} alone"
    elif others:
        as_pair = scalar([text.name, others[0].name])
        found.comments["text"] = f"the likeliest; or {names_of(others)}; or a pair: {as_pair}"
    return Recognized(keys | found.keys, found.comments, found.summary)


def _label(sample: Sample, texts: Sequence[Column]) -> Recognized | None:
    """The keys for the label of these texts, and for the type of the task; None: there is no label."""
    columns = sample.columns
    if (several := _list_label(columns)) is not None:
        return _list_of_labels(several)
    others = [each for each in columns if each not in texts]
    if sample.is_named and (flags := _flag_columns(others)):
        return _several_columns(flags)
    if labels := label_columns(columns, texts):
        return _one_column(labels)
    is_sheet = sample.is_named and sample.format in ("csv", "tsv")
    return _several_columns(ticks) if is_sheet and (ticks := _flag_columns(others, ticks=True)) else None


def _list_label(columns: Sequence[Column]) -> Column | None:
    """A column of lists of labels, with any number per row, or of lists or objects with a 0 or 1 for each."""
    for column in columns:
        items = [item for each in column.lists or () for item in each]
        if not items or not all(isinstance(item, str | int | float) for item in items):
            continue
        is_repeated = len(set(items)) <= max(50, len(items) // 5)
        are_objects = flags_of(column.values[0]) is not None and len(set(items)) > 1
        is_label = column.is_named_label or are_objects
        if _hot_labels(column) or (is_label and is_repeated):
            return column
    return None


def _hot_labels(column: Column) -> int:
    """The number of labels in lists that hold a 0 or 1 for each label; 0: they are other lists."""
    sizes = {len(each) for each in column.lists or ()}
    are_flags = all(is_flag(item) for each in column.lists or () for item in each)
    return sizes.pop() if len(sizes) == 1 and are_flags else 0


def _flag_columns(columns: Sequence[Column], ticks: bool = False) -> list[Column]:
    """Columns of 0 and 1, one for each label of a text, or with `ticks` of marks in some rows.

    They are empty if there are none, or if another column has the name of a label.
    """
    own = [column for column in columns if not column.is_other]
    flags = [column for column in own if column.is_ticks or (column.is_flags and not ticks)]
    filled = 0 if ticks else max((len(column.values) for column in flags), default=0)
    flags = [column for column in flags if len(column.values) >= _FILLED * filled]
    named = [column for column in columns if column.is_named_label and column.can_be_label]
    is_one_label = any(column not in flags for column in named) or (len(flags) == 2 and named)
    several = sum(ticks or column.distinct > 1 for column in flags)
    return [] if is_one_label or several < 2 else flags


def _several_columns(flags: Sequence[Column]) -> Recognized:
    """The keys for a column for each label."""
    task = Recognized({"type": "classification"})
    names = [column.name for column in flags]
    task.add(
        "label", names, f"a yes or no in a column for each; or one of them, as label: {scalar(names[0])}"
    )
    if all(column.is_ticks for column in flags):
        task.add("ticks", True, "a mark says that the label fits, and an empty cell that it does not")
        return task
    _leave_out_empty(task, max(flags, key=lambda column: len(column.values)))
    return task


def _leave_out_empty(task: Recognized, label: Column) -> None:
    """Leave out the rows without a label, if there are some; those of `skip_labels` are left out already."""
    if empty := label.rows - len(label.values):
        why = f'"": {empty:,} rows have no label yet; bertcli suggest says which of them to label next'
        if others := task.comments.get("skip_labels"):
            why = f"{others}; {why}"
        task.add("skip_labels", [*task.keys.get("skip_labels", []), ""], why)


def _list_of_labels(label: Column) -> Recognized:
    keys: dict[str, Any] = {"type": "classification", "label": label.name, "multi_label": True}
    if (labels := _hot_labels(label)) == 0:
        return Recognized(keys, {"multi_label": "each row has a list of labels"})
    task = Recognized(keys, summary="the names of the labels are made up: see label_names")
    why = "made up: the file has a 0 or 1 for each of them, and no names; put theirs here, in this order"
    task.add("label_names", [f"label{number}" for number in range(labels)], why)
    return task


def _one_column(labels: Sequence[Column]) -> Recognized:
    """The keys for the type of the task and its label, the first of these columns."""
    label = labels[0]
    task = Recognized({"label": label.name})
    if len(labels) > 1 and not label.is_named_label:
        task.comments["label"] = f"the likeliest; or {names_of(labels[1:4])}"
    task.add("type", *_kind_of_label(label))
    if task.keys["type"] != "classification":
        return task
    values = [one_spelling(str(value).strip()) for value in label.values]
    if not label.is_number and (separator := separator_of(values)) is not None:
        why = f"{separator!r} stands between labels that also stand alone; false: one a row"
        task.add("multi_label", True, why)
        if separator != ",":
            task.keys["label_separator"] = separator
    if (mark := mark_of_no_label(values)) is not None:
        why = "it usually says that a row has no label; or []: learn it as one"
        task.add("skip_labels", [mark], why)
    if "multi_label" not in task.keys:
        _leave_out_empty(task, label)
    return task


def _kind_of_label(label: Column) -> tuple[str, str]:
    """The type of the task, and the reason."""
    if label.is_number:
        whole = all(number.is_integer() for number in label.numbers)
        low, high = min(label.numbers), max(label.numbers)
        if not whole or label.distinct > _FEW_VALUES:
            other = "; or classification, a label for each" if whole else ""
            return "regression", f"{label.name} holds numbers from {low:g} to {high:g}{other}"
        if label.distinct > 2:
            why = (
                f"{label.distinct} whole numbers; or regression, if they are measures, or grades as of stars"
            )
            return "classification", f"{label.name} holds {why}"
    values = sorted({str(value) for value in label.values})
    shown = ", ".join(values[:_SHOWN]) + (", ..." if len(values) > _SHOWN else "")
    return "classification", f"{label.name} has {len(values)} values: {shown}"


def _fasttext(sample: Sample) -> Recognized:
    rows = _format_rows(sample)
    several = sum(len(row.values["label"]) != 1 for row in rows)
    task = Recognized({"type": "classification", "format": "fasttext"}, {}, "lines of fastText")
    task.comments["type"] = "labels as in fastText: __label__NAME before each text"
    if several:
        why = f"{several:,} of {len(rows):,} lines have several labels or none; false: one a line"
        task.add("multi_label", True, why)
    return task


def _trec(sample: Sample) -> Recognized:
    rows = _format_rows(sample)
    coarse, fine = ({row.values[name] for row in rows} for name in ("label", "fine"))
    task = Recognized({"type": "classification", "format": "trec"}, {}, "lines of TREC")
    task.comments["type"] = "labels as in TREC: COARSE:fine before each text"
    why = f"the first part: {len(coarse)} labels; or fine: both parts, {len(fine)} labels"
    task.add("label", "label", why)
    return task


def _format_rows(sample: Sample) -> list[Row]:
    keys = {"type": "classification", "format": sample.format, "multi_label": True, **sample.keys}
    file = LabeledFile(sample.path, TaskSettings.model_validate(keys))
    table = open_label_lines(file, sample.format)
    return [row for row in islice(table.rows, _MOST_LINES) if isinstance(row, Row)]
