"""Rows -> texts with labels, however programs write these: lists, separators, numbers, 0 and 1."""

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from bertcli.config.task import TaskSettings
from bertcli.system.errors import UserError
from bertcli.tasks.examples import TextExample
from bertcli.tasks.table import BadRow, Row, SkippedRow, Table, each, one_spelling, scalar_text
from bertcli.tasks.tags import is_tag, named

SEPARATORS = (",", "|", ";", "/", "&", "+")
"""Characters that can separate labels in a field."""
_ITEM = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[+-]?\d+(?:\.\d*)?|[Tt]rue|[Ff]alse"""
_LIST = re.compile(rf"\s*+(?:{_ITEM})?+(?:(?:\s*+,\s*+|\s++)(?:{_ITEM}))*+\s*+,?+\s*+", re.DOTALL)
"""The inside of a list. Possessive quantifiers let a long field that is no list fail at once."""
_ARRAY = re.compile(r"array\((.*?)(?:,\s*dtype=\S+)?\)", re.DOTALL)
_BRACKETS = {"[": "]", "(": ")", "{": "}"}
_FLAGS = {
    "0": False,
    "1": True,
    "false": False,
    "true": True,
    "no": False,
    "yes": True,
    "n": False,
    "y": True,
}
_TICKS = frozenset("xX✓✔☑*+")
_BITS = re.compile(r"[01](?:\.0*+)?+(?:(?:\s*+[,;|]\s*+|\s++)[01](?:\.0*+)?+){2,}+")
_NO_LABEL = "without a label (task.skip_labels)"
_FREQUENT, _ALONE = 0.05, 0.5
"""Least shares for a separator to divide labels: of the labels that contain it, and of the parts of these
labels that also stand alone."""


def written_list(text: str) -> list[Any] | None:
    """The items of a list as JSON, Python and NumPy write it: `['a', 'b']`, `[0 1]`; None if the text is
    none.

    Brackets of another kind hold a list only if there is a quote or a comma in them.
    """
    text = text.strip()
    if array := _ARRAY.fullmatch(text):
        text = array[1].strip()
    inside = text[1:-1]
    if len(text) < 2 or _BRACKETS.get(text[0]) != text[-1] or not _LIST.fullmatch(inside):
        return None
    if text[0] != "[" and not any(mark in inside for mark in "'\","):
        return None
    return [_item(item) for item in re.findall(_ITEM, inside, re.DOTALL)]


def _item(text: str) -> Any:
    if text.lower() in _FLAGS and not text.isdecimal():
        return text.lower() == "true"
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    return text.strip("'\"")


def is_flag(value: Any) -> bool:
    """True if this is 0, 1, true, false, yes, no, y or n, also as text or as 1.0."""
    return isinstance(value, str | int | float) and one_spelling(str(value).strip().lower()) in _FLAGS


def flag(value: Any) -> bool:
    """The boolean value of a flag (`is_flag`)."""
    return _FLAGS[one_spelling(str(value).strip().lower())]


def is_tick(value: Any) -> bool:
    """True if this is a mark that says yes, such as x or 1 (`task.ticks`)."""
    return str(value).strip() in _TICKS or (is_flag(value) and flag(value))


def flags_of(value: Any) -> dict[str, bool] | None:
    """The value of each label in an object, such as `{"toxic": 1, "insult": 0}`; None for anything else."""
    if not isinstance(value, Mapping) or not value or not all(map(is_flag, value.values())):
        return None
    return {str(name): flag(each) for name, each in value.items()}


def object_in(text: str, where: str) -> dict[str, Any] | None:
    """The 0 or 1 of each label in a written object of JSON or Python; None if the text is none.

    Raises `BadRow` for an object of other values.
    """
    text = text.strip()
    if text[:1] + text[-1:] != "{}" or ":" not in text:
        return None
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            if flags_of(found := read(text)) is not None:
                return found
    raise BadRow(f"{where}: {shortened(text)} is no object with a 0 or 1 for each label")


def is_multi_hot(values: Sequence[Any]) -> bool:
    """True if a list surely has a 0 or 1 for each label: one of the two is repeated, as no label would be."""
    return all(map(is_flag, values)) and len(set(map(flag, values))) < len(values)


def bits(text: str) -> list[str] | None:
    """The values of a multi-hot list without brackets, such as `0 1 0`; None if the text is none."""
    return re.findall(r"[01](?:\.0*)?", text) if _BITS.fullmatch(text.strip()) else None


def separator_of(labels: Iterable[str]) -> str | None:
    """The separator between several labels in one field; None if there is none.

    A separator occurs in many labels, and most of the parts that it divides also occur alone as labels.
    """
    counts = Counter(labels)
    for separator in SEPARATORS:
        several = [label for label in counts if separator in label]
        parts = {part.strip() for label in several for part in label.split(separator)}
        alone = {label.strip() for label in counts if separator not in label}
        is_frequent = sum(counts[label] for label in several) > _FREQUENT * counts.total()
        if is_frequent and "" not in parts and len(parts & alone) >= _ALONE * len(parts):
            return separator
    return None


def one_label(value: Any, settings: TaskSettings, where: str) -> str:
    """The label of a text. Raises `BadRow` for none, `UserError` for a field that surely holds several."""
    if isinstance(value, list):
        raise UserError(f"{where}: holds a list, {shortened(value)}; {_several(value)}")
    text = "" if value is None else scalar_text(value, where).strip()
    if not text:
        raise BadRow(f"{where}: no label")
    if object_in(text, where) is not None:
        raise UserError(f"{where}: {shortened(text)} is an object; {_several([text])}")
    items = written_list(text) if text[0] in "[({a" else bits(text)
    if items is not None:
        raise UserError(f"{where}: {shortened(text)} is a list of labels; {_several(items)}")
    words = text.split()
    if len(words) > 1 and all(map(is_tag, words)) and any("-" in word for word in words):
        raise UserError(
            f"{where}: {shortened(text)} is a tag for each word; set task.type: token-classification"
        )
    return named(one_spelling(text), settings, where)


def _several(items: Sequence[Any]) -> str:
    if is_multi_hot(items):
        return f"a 0 or 1 for each label: set task.multi_label: true and {_names(len(items))}"
    return "for any number of labels a text set task.multi_label: true"


def _names(number: int) -> str:
    shown = ", ".join(("A", "B", "C")[:number]) + (", ..." if number > 3 else "")
    return f"task.label_names: [{shown}], the {number} names in the order of the list"


def several_labels(value: Any, settings: TaskSettings, where: str) -> tuple[str, ...]:
    """The labels of a list, or of a text with a separator between them: each once, in order.

    Raises `UserError` for a list of 0 and 1 without `label_names`, or of another length than they have.
    """
    if value is None:
        return ()
    if isinstance(value, str):
        value = object_in(value, where) or value
    if (flags := flags_of(value)) is not None:
        value = [name for name, fits in flags.items() if fits]
    parts = value if isinstance(value, list) else _parts(scalar_text(value, where), settings, where)
    names = settings.label_names
    may_be_flags = names is not None and parts and (len(parts) == len(names) or len(names) == 2)
    if names is not None and may_be_flags and all(map(is_flag, parts)):
        if len(parts) != len(names):
            raise UserError(f"{where}: {shortened(value)}: expected a 0 or 1 for each of {len(names)} names")
        return tuple(name for name, part in zip(names, parts, strict=True) if flag(part))
    if is_multi_hot(parts):
        problem = f"has {len(parts)} values, not {len(names)}" if names else "is multi-hot"
        raise UserError(
            f"{where}: {shortened(value)} {problem}, a 0 or 1 for each label: set {_names(len(parts))}"
        )
    labels = (one_spelling(scalar_text(part, where).strip()) for part in parts)
    return tuple(dict.fromkeys(named(label, settings, where) for label in labels if label))


def _parts(text: str, settings: TaskSettings, where: str) -> Sequence[Any]:
    separator = settings.label_separator or ","
    items = written_list(text)
    if items is None and settings.label_separator is None:
        items = bits(text)
    if items is not None:
        return items
    stripped = text.strip()
    if stripped[:1] == "[" and stripped[-1:] == "]" and separator in stripped:
        raise UserError(
            f"{where}: {shortened(text)} looks like a list without quotes; write it as a JSON list, such as "
            ' ["a", "b"], or without the brackets'
        )
    return text.split(separator)


def flagged_labels(row: Row, columns: Sequence[str], settings: TaskSettings) -> tuple[str, ...]:
    """The names of the columns that hold 1, or with `ticks` a mark.

    Raises `BadRow` for a value that says neither, `SkippedRow` for a row with one of `skip_labels`; "" there
    means a row without any.
    """
    values = {column: row.value(column) for column in columns}
    filled = [column for column in columns if not _is_empty(values[column])]
    given = {one_spelling(str(values[column]).strip()) for column in filled} or {""}
    if given.intersection(map(one_spelling, settings.skip_labels or ())):
        raise SkippedRow(_NO_LABEL)
    for column in filled if settings.ticks else columns:
        if not is_flag(values[column]) and not (settings.ticks and is_tick(values[column])):
            shown = shortened(values[column]) or "nothing"
            raise BadRow(
                f"{row.where}, column {column!r}: {shown} is neither 0 nor 1; a column for each label "
                "(task.label) holds 1 where the label fits, and else 0, or nothing with task.ticks: true"
            )
    return tuple(column for column in columns if is_tick(values[column]))


def _is_empty(value: Any) -> bool:
    return value is None or value == [] or (isinstance(value, str) and not value.strip())


def shortened(value: Any) -> str:
    """The value as text, of at most 60 characters."""
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


Label = str | tuple[str, ...] | float
ReadLabel = Callable[[Row, str, TaskSettings], Label]
"""A row, the label's column and the settings -> the label."""


def text_examples(table: Table, read: ReadLabel) -> Iterator[TextExample | BadRow]:
    """An example for each row: a text or a pair, whose label `read` finds in its column.

    Raises `UserError` if a column is missing, or cannot be the label's.
    """
    settings, labeled = table.file.settings, table.file.labeled
    columns = [table.column(column, "task.text") for column in settings.text_columns]
    labels = [table.column(column, "task.label") for column in settings.label_columns] if labeled else []
    if labeled and not labels:
        table.label()
    if same := sorted({*columns} & {*labels}):
        raise UserError(
            f"{table.file.path}: task.text and task.label both name the column {same[0]!r}: the model would "
            "read its answer. Name two columns"
        )

    def example(row: Row) -> TextExample:
        texts = tuple(row.text(column) for column in columns)
        if len(labels) > 1:
            value = flagged_labels(row, labels, settings)
        else:
            value = _label(row, labels[0], settings, read=read) if labels else None
            value = sys.intern(value) if type(value) is str else value  # one object for all rows
        return TextExample(row.where, row.values, texts, label=value)

    return each(table.rows, example)


def _label(row: Row, column: str, settings: TaskSettings, read: ReadLabel) -> Label:
    if isinstance(settings.label, int) and (value := row.value(column)) == column:
        raise UserError(
            f"{row.where}: the label is {value!r}, as in the first line: if that line is not a header, name "
            "the columns in task.columns; if the header is repeated here, delete this line"
        )
    return read(row, column, settings)


def read_labels(row: Row, column: str, settings: TaskSettings) -> str | tuple[str, ...]:
    """The label in a column, or the labels with `multi_label`. Raises `SkippedRow` for a row to leave out."""
    where = f"{row.where}, column {column!r}"
    if "" in (settings.skip_labels or ()) and _is_empty(row.value(column)):
        raise SkippedRow(_NO_LABEL)
    label = (several_labels if settings.multi_label else one_label)(row.value(column), settings, where)
    found = label if isinstance(label, tuple) else (label,)
    if settings.skip_labels and not set(found).isdisjoint(settings.skip_labels):
        raise SkippedRow("by their label (task.skip_labels)")
    return label
