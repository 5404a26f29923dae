"""Rows of a table -> texts or pairs with their labels: classification and regression."""

from __future__ import annotations

import difflib
import math
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from bertcli.config.task import LABEL_LINES, TaskSettings
from bertcli.corpus.encodings import mark_note
from bertcli.corpus.json_texts import is_json_list
from bertcli.corpus.streams import check_file_extras, deciding_mark, find_bad_lines, numbered_lines
from bertcli.samples import LABELED
from bertcli.system.errors import UserError
from bertcli.system.files import looked_in, refuse_special
from bertcli.tasks.choices import choice_examples
from bertcli.tasks.delimited import open_delimited
from bertcli.tasks.examples import BadRow, Example, SimilarExample, SkippedRow, TextExample, each, keep_usable
from bertcli.tasks.label_cells import flagged_labels, one_label, several_labels
from bertcli.tasks.rows import format_hint, open_jsonl, open_label_lines, open_parquet
from bertcli.tasks.squad import question_examples, read_squad
from bertcli.tasks.table import Row, Table
from bertcli.tasks.words import read_conll, tagged_examples, tagged_text

Label = str | tuple[str, ...] | float

_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


def text_examples(table: Table, settings: TaskSettings, labeled: bool) -> Iterator[TextExample | BadRow]:
    """An example for each row. Raises `UserError` if a column is missing, or cannot be the label's."""
    columns = [table.column(column, "task.text") for column in settings.text_columns]
    labels = [table.column(column, "task.label") for column in settings.label_columns] if labeled else []
    if labeled and not labels:
        table.label(None)
    if same := sorted({*columns} & {*labels}):
        raise UserError(
            f"{table.path}: task.text and task.label both name the column {same[0]!r}: the model would "
            "read its answer. Name two columns"
        )

    def example(row: Row) -> TextExample:
        text_a, *text_b = (row.text(column) for column in columns)
        if len(labels) > 1:
            value = flagged_labels(row, labels)
        else:
            value = _label(row, labels[0], settings) if labels else None
            value = sys.intern(value) if type(value) is str else value  # one object for all rows
        return TextExample(row.where, row.values, text_a, text_b=text_b[0] if text_b else None, label=value)

    return each(table.rows, example)


def _label(row: Row, column: str, settings: TaskSettings) -> Label:
    value = row.value(column)
    if isinstance(settings.label, int) and value == column:
        raise UserError(
            f"{row.where}: the label is {value!r}, as in the first line: if that line is not a header, name "
            "the columns in task.columns; if the header is repeated here, delete this line"
        )
    if settings.type == "regression":
        return _number(row, column, settings)
    where = f"{row.where}, column {column!r}"
    read = several_labels if settings.multi_label else one_label
    label = read(value, settings, where)
    found = label if isinstance(label, tuple) else (label,)
    if settings.skip_labels and not set(found).isdisjoint(settings.skip_labels):
        raise SkippedRow(where)
    return label


def _number(row: Row, column: str, settings: TaskSettings) -> float:
    number = read_number(row, column, settings)
    if settings.sigmoid and not 0 <= number <= 1:
        raise BadRow(
            f"{row.where}, column {column!r}: {number:g} is not from 0 to 1, as task.sigmoid: true needs it; "
            "give such numbers, or set task.sigmoid: false"
        )
    return number


def read_number(row: Row, column: str, settings: TaskSettings) -> float:
    """The number in a column. Raises `BadRow` if it is none, or not finite."""
    value, where = row.value(column), f"{row.where}, column {column!r}"
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        shown = textwrap.shorten(repr(value), 60, placeholder="...")
        if isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip()):
            point = value.strip().replace(",", ".")
            raise BadRow(
                f"{where}: {shown} is not a number; its comma may be decimal or separate thousands: write "
                f"numbers with a decimal point and no commas, such as {point}"
            )
        raise BadRow(f"{where}: {shown} is not a number; task.type: {settings.type} needs one, such as 3.5")
    return number


def similar_examples(
    table: Table, settings: TaskSettings, labeled: bool
) -> Iterator[SimilarExample | BadRow]:
    """An example for each row. Raises `UserError` if a column is missing."""
    columns = [table.column(column, "task.text") for column in settings.text_columns]
    score = table.label(settings.label) if labeled and settings.label is not None else None

    def example(row: Row) -> SimilarExample:
        texts = tuple(row.text(column) for column in columns)
        value = None if score is None else read_number(row, score, settings)
        return SimilarExample(row.where, row.values, texts, score=value)

    return each(table.rows, example)


Format = Literal["tsv", "csv", "jsonl", "parquet", "conll", "squad", "fasttext", "trec", "lines"]

_BY_SUFFIX: dict[str, Format] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".conll": "conll",
    ".bio": "conll",
    ".iob": "conll",
}
_FROM_TABLES: dict[str, Callable[[Table, TaskSettings, bool], Iterator[Example | BadRow]]] = {
    "classification": text_examples,
    "regression": text_examples,
    "token-classification": tagged_examples,
    "question-answering": question_examples,
    "multiple-choice": choice_examples,
    "sentence-embedding": similar_examples,
}


def find_labeled_file(name: str) -> Path:
    """The path `name`, or the file of the bundled sample `name`. Raises `UserError` if there is neither."""
    path = Path(name).expanduser()
    if path.is_file():
        return path
    refuse_special(path)
    if name in LABELED:
        return LABELED[name]
    if path.is_dir():
        raise UserError(f"{name}: is a folder; name the file in it")
    siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, siblings, n=1)
    nearest = [str(path.parent / near[0])] if near else difflib.get_close_matches(name, LABELED, n=1)
    hint = f"did you mean {nearest[0]}?" if nearest else f"bundled samples: {', '.join(LABELED)}"
    raise UserError(f"{name}: no such file{looked_in(path)}; {hint}")


def check_extras(path: Path, settings: TaskSettings) -> None:
    """Raise `UserError` if a package that is needed to read the file is missing."""
    check_file_extras(path, file_format(path, settings, True) == "parquet")


def read_examples(
    path: Path,
    settings: TaskSettings,
    labeled: bool,
    skip_bad: bool = False,
    report: Callable[[str], None] = lambda line: None,
    note: Callable[[str], None] = lambda line: None,
) -> Iterator[Any]:
    """The examples of a file, of the task's own class (`tasks.examples`), one at a time; a SQuAD file is read
    at once.

    Args:
        labeled: whether labels are read; a file to predict need not have them.
        skip_bad: leave out rows that cannot be used, and name them to `report`.
        report: called with what may be wrong with the file.
        note: called with how the file is read, if that had to be guessed.

    Raises:
        UserError: a file that cannot be read as the settings say, with file and line; unusable rows, once
            all are counted.
    """
    format = file_format(path, settings, labeled)
    if format != "parquet" and (mark := deciding_mark(path, settings.encoding)):
        note(mark_note(path, mark))
    if format != "parquet" and settings.bad_bytes != "refuse":
        for line in find_bad_lines(path, settings.decoding).notes(path, settings.decoding):
            note(line)
    found = _read(path, format, settings, labeled=labeled, report=report, note=note)
    return keep_usable(found, path, labeled, skip_bad=skip_bad, report=report)


def file_format(path: Path, settings: TaskSettings, labeled: bool) -> Format:
    """The format: `settings.format`; for `auto` that of the suffix. An ambiguous suffix is decided by the
    task.

    A model that learned from lines with labels also predicts for tables, which are known by their suffix.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    is_table = not labeled and (suffix in (".tsv", ".json") or suffix in _BY_SUFFIX)
    if settings.format != "auto" and not (is_table and settings.format in LABEL_LINES):
        return settings.format
    is_words = settings.type == "token-classification"
    if suffix in _BY_SUFFIX and (is_words or _BY_SUFFIX[suffix] != "conll"):
        return _BY_SUFFIX[suffix]
    if suffix == ".json":
        is_squad = settings.type == "question-answering" and not is_json_list(path, settings.decoding)
        return "squad" if is_squad else "jsonl"
    if suffix == ".txt" and (settings.is_plain_text or not labeled):
        return "lines"
    if is_words and not isinstance(settings.text, str):
        return "conll"
    return "tsv"


def _read(
    path: Path,
    format: Format,
    settings: TaskSettings,
    labeled: bool,
    report: Callable[[str], None],
    note: Callable[[str], None],
) -> Iterator[Example | BadRow]:
    if format == "conll":
        return read_conll(path, settings, labeled, report=report, note=note)
    if format == "squad":
        return read_squad(path, settings, labeled)
    if format == "lines":
        return _read_lines(path, settings, report, labeled=labeled)
    if format == "jsonl":
        table = open_jsonl(path, settings.decoding, report)
    elif format == "parquet":
        table = open_parquet(path)
    elif format in LABEL_LINES:
        table = open_label_lines(path, format, settings, labeled=labeled, note=note)
    else:
        table = open_delimited(path, format, settings, labeled=labeled, report=report, note=note)
    return _FROM_TABLES[settings.type](table, settings, labeled)


def _read_lines(
    path: Path, settings: TaskSettings, report: Callable[[str], None], labeled: bool
) -> Iterator[Example]:
    """An example for each line. A blank line is an empty text in a file to predict. Raises `UserError` if a
    row of the task has several texts."""
    if settings.type in ("question-answering", "multiple-choice") or len(settings.text_columns) > 1:
        raise UserError(
            f"{path}: a line of plain text is one text, but a row of this task has several; give a "
            "table (.tsv, .csv, .jsonl) with its columns"
        )
    for number, line in numbered_lines(path, settings.decoding):
        text, where = line.strip(), f"{path}, line {number}"
        if number == 1 and (hint := format_hint(text)):
            report(f"{where}: is read as text, from its first word on{hint}")
        if settings.type == "token-classification":
            yield tagged_text(where, {"text": text}, text)
        elif settings.type == "sentence-embedding":
            if text or not labeled:
                yield SimilarExample(where, {"text": text}, (text,), score=None)
        else:
            yield TextExample(where, {"text": text}, text, text_b=None, label=None)
