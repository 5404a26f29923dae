"""What a labeled file holds: its first rows, and the task that recognizes them."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from bertcli.advice.init.files import Seen, suffix_of
from bertcli.advice.init.kinds import csv_records, csv_separator
from bertcli.config.section import Decoding
from bertcli.corpus.streams import find_bad_lines
from bertcli.system.errors import UserError
from bertcli.tasks.columns import Column, Recognized, Sample, columns_of, text_column
from bertcli.tasks.delimited import SEPARATORS, find_separator, separator_in
from bertcli.tasks.files import TABLES, file_format, open_table, settings_of_texts
from bertcli.tasks.registry import TASKS
from bertcli.tasks.span_files import are_spans, recognize_spans
from bertcli.tasks.supervised import LabeledTask, task_class
from bertcli.tasks.table import LabeledFile, Row

SOME_ROWS, MOST_ROWS = 2_000, 100_000
"""Numbers of rows that are read to recognize a file, and to recognize its task."""
_NAME = re.compile(r"[^\W\d][\w .,()/-]{0,39}|#\d[\w .]{0,39}")
_SEPARATORS = SEPARATORS | {"|": "vertical bars"}


def read_table(seen: Seen, most: int = MOST_ROWS) -> Sample:
    """A labeled file; of a table, at most `most` rows. Raises `UserError` if it cannot be read."""
    keys: dict[str, Any] = {}
    comments: dict[str, str] = {}
    is_table, is_named = seen.kind in TABLES, True
    how = {"jsonl": "JSON", "parquet": "Parquet"}.get(seen.kind, "")
    if is_table and file_format(LabeledFile(seen.path, settings_of_texts())) != seen.kind:
        keys["format"] = seen.kind
        comments["format"] = f"by its content; the suffix {suffix_of(seen.path) or '(none)'} does not say it"
    if seen.encoding.name != "utf-8":
        keys["encoding"], comments["encoding"] = seen.encoding
    decoding = Decoding(seen.encoding.name, "replace", "task")
    if seen.kind not in ("parquet", "brat") and (
        notes := find_bad_lines(seen.path, decoding).notes(seen.path, decoding)
    ):
        keys["bad_bytes"] = "replace"
        comments["bad_bytes"] = f"{notes[0].splitlines()[0]}; or skip-line: without these rows"
    if seen.kind in ("tsv", "csv"):
        separator, records = _records(seen)
        name = _SEPARATORS[separator]
        if find_separator(LabeledFile(seen.path, settings_of_texts(**keys)), seen.kind) != separator:
            keys["separator"] = separator
            comments["separator"] = f"{name} divide the lines into {len(records[0])} fields"
        is_named = _has_header(records)
        how = f"{name} between {len(records[0])} columns, with{'' if is_named else 'out'} a header"
        if not is_named:
            keys["columns"] = _column_names(records)
            comments["columns"] = "the first line is data, not a header; the names are made up"
    columns = columns_of(_rows(seen, keys, most)) if is_table else ()
    return Sample(
        *(seen.path, suffix_of(seen.path), seen.kind),
        lines=seen.lines,
        columns=columns,
        is_named=is_named,
        keys=keys,
        comments=comments,
        how=how,
    )


def _rows(seen: Seen, keys: Mapping[str, Any], most: int) -> list[Mapping[str, Any]]:
    table = open_table(LabeledFile(seen.path, settings_of_texts(**keys)), seen.kind)
    rows = (row.values for row in table.rows if isinstance(row, Row))
    found = list(itertools.islice(rows, most))
    if not found:
        raise UserError(f"{seen.path}: holds no rows that can be read{table.hint}")
    return found


def _records(seen: Seen) -> tuple[str, list[list[str]]]:
    """The separator, and the first records."""
    full = [line for line in seen.lines if line.strip()]
    if seen.kind == "tsv":
        return "\t", [line.split("\t") for line in full]
    separator = csv_separator(full) or separator_in(full[0], _SEPARATORS)
    return separator, csv_records(full, separator) or [full[0].split(separator)]


def _has_header(records: Sequence[Sequence[str]]) -> bool:
    """True if the first record names the columns: short names, all different, and none is a value below."""
    first, rest = [name.strip() for name in records[0]], records[1:]
    named = [name for name in first if name]
    if not named or len(set(named)) < len(named) or not all(_NAME.fullmatch(name) for name in named):
        return False
    return not any(
        name and len(record) > column and record[column].strip() == name
        for record in rest
        for column, name in enumerate(first)
    )


def _column_names(records: Sequence[Sequence[str]]) -> list[str]:
    """Invented names of columns: the longest column is the text."""
    width = len(records[0])
    sizes = [
        sum(len(record[column]) for record in records if len(record) == width) for column in range(width)
    ]
    longest = sizes.index(max(sizes))
    return ["text" if column == longest else f"column{column}" for column in range(width)]


_NO_LABELS = "To pretrain on the texts alone, write them to a plain text file, a blank line between two"


def find_task(seen: Seen) -> Recognized:
    """The task of a file. Raises `UserError` if the file shows none."""
    sample = read_table(seen)
    if seen.kind in TABLES and len(sample.columns) < 2:
        raise UserError(f"{seen.path}: has one column; expected a text and its label. {_NO_LABELS}")
    _refuse_unreadable(sample)
    found = next(filter(None, (task.recognize(sample) for task in _tasks())), None)
    if found is None:
        names = ", ".join(column.name for column in sample.columns)
        text = text_column(sample.columns)
        if text is None:
            raise UserError(
                f"{seen.path}: no column holds texts; its columns: {names}. Write a config by hand: bertcli "
                "config finetune > mine.yaml"
            )
        raise UserError(
            f"{seen.path}: no column holds labels (few different values, or numbers) beside the text in "
            f"{text.name!r}; its columns: {names}. {_NO_LABELS}"
        )
    summary = "; ".join(filter(None, [sample.how, found.summary]))
    return Recognized(found.keys | sample.keys, sample.comments | found.comments, summary)


def can_be_labeled(seen: Seen) -> bool:
    """True if JSON lines or Parquet hold labels. Raises `UserError` for labels that cannot be read."""
    sample = read_table(seen, SOME_ROWS)
    _refuse_unreadable(sample)
    return any((task.may_be_in or task.recognize)(sample) for task in _tasks())


def _tasks() -> list[type[LabeledTask]]:
    """All tasks, in the order in which they are asked."""
    return [task_class(type) for type in reversed(TASKS)]


def doubtful_columns(seen: Seen) -> list[str]:
    """The columns of JSON lines or Parquet, taken as a corpus, that may be labels by name or form."""
    others = [each for each in read_table(seen, SOME_ROWS).columns if not each.is_other and not each.is_text]
    return [
        column.name
        for column in others
        if column.is_named_label or any(isinstance(value, list | dict) for value in column.values)
    ]


_DECISIONS = frozenset(("accept", "reject", "ignore"))
_MARKS = ("annotations", "completions")


def _refuse_unreadable(sample: Sample) -> None:
    """Raise `UserError` for labels as other programs write them, which no task reads; it says how to write
    them."""
    if recognize_spans(sample) is not None:
        return
    problem = next(filter(None, map(_problem, sample.columns)), None)
    names = {column.name for column in sample.columns}
    if problem is None and "data" in names and not names.isdisjoint(_MARKS):
        problem = (
            "is an export of Label Studio without spans of a text, which cannot be read yet; export labels "
            "of whole texts as CSV"
        )
    if problem is not None:
        raise sample.refusal(problem)


def _problem(column: Column) -> str | None:
    """The problem with a column that cannot be read; None: there is none."""
    name = repr(column.name)
    if {str(value) for value in column.values} <= _DECISIONS and column.distinct > 1:
        return (
            f"the column {name} holds decisions of Prodigy (accept, reject), which cannot be read yet: keep "
            "the rows that are accepted, and delete this column"
        )
    if any(map(are_spans, column.values)):
        return (
            f"the column {name} holds spans of characters, which are read from JSON lines alone, in each row "
            "beside a text; write the rows as JSON lines"
        )
    items = [item for value in column.values if isinstance(value, list) for item in value]
    if items and all(isinstance(item, dict) and "question" in item for item in items):
        return (
            f"the column {name} holds questions about a text, which are read from SQuAD JSON: write it as "
            '{"data": [{"paragraphs": [{"context": ..., "qas": [...]}]}]}'
        )
    return None
