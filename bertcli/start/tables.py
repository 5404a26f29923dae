"""A table of any format -> its rows, and how a config says to read them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertcli.config.decoding import Decoding
from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.examples.delimited import open_delimited
from bertcli.examples.files import file_format
from bertcli.examples.jsonl import open_jsonl
from bertcli.examples.parquet import open_parquet
from bertcli.examples.records import find_separator
from bertcli.examples.table import Row
from bertcli.start.files import Seen, suffix_of
from bertcli.start.kinds import csv_records, csv_separator
from bertcli.text.streams import find_bad_lines

SOME_ROWS, MOST_ROWS = 2_000, 100_000
"""Rows that are read to tell what a file is, and to tell its task."""
_NAME = re.compile(r"[^\W\d][\w .,()/-]{0,39}|#\d[\w .]{0,39}")
_ANY = TaskSettings(type="classification", text="text")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}


@dataclass(frozen=True)
class TableLook:
    """The rows of a table.

    Attributes:
        rows: column -> value, of the first ones.
        is_named: whether the columns have names of their own.
        keys: of `task`, as needed to read the file: format, columns, encoding.
        comments: why, by key.
        how: how the file is read, in words.
    """

    rows: list[Mapping[str, Any]]
    is_named: bool
    keys: dict[str, Any] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    how: str = ""


def read_table(seen: Seen, most: int = MOST_ROWS) -> TableLook:
    """The table, with at most so many rows. Raises `UserError` where it cannot be read."""
    keys: dict[str, Any] = {}
    comments: dict[str, str] = {}
    is_named, how = True, {"jsonl": "JSON", "parquet": "Parquet"}.get(seen.kind, "")
    if file_format(seen.path, _ANY, labeled=True) != seen.kind:
        keys["format"] = seen.kind
        comments["format"] = f"by its content; the suffix {suffix_of(seen.path) or '(none)'} does not say it"
    if seen.encoding.name != "utf-8":
        keys["encoding"], comments["encoding"] = seen.encoding
    bad_bytes_keys(seen, keys, comments)
    if seen.kind in ("tsv", "csv"):
        separator, records = _records(seen)
        name = _SEPARATORS[separator]
        if find_separator(seen.path, seen.kind, _settings(keys)) != separator:
            keys["separator"] = separator
            comments["separator"] = f"{name} divide the lines into {len(records[0])} fields"
        is_named = _has_header(records)
        how = f"{name} between {len(records[0])} columns, with{'' if is_named else 'out'} a header"
        if not is_named:
            keys["columns"] = _column_names(records)
            comments["columns"] = "the first line is data, not a header; the names are made up"
    return TableLook(_rows(seen, keys, most), is_named, keys, comments=comments, how=how)


def bad_bytes_keys(seen: Seen, keys: dict[str, Any], comments: dict[str, str]) -> None:
    """Add `bad_bytes` where the file has bytes that are not in its encoding."""
    decoding = Decoding(seen.encoding.name, "replace", "task")
    if seen.kind != "parquet" and (notes := find_bad_lines(seen.path, decoding).notes(seen.path, decoding)):
        keys["bad_bytes"] = "replace"
        comments["bad_bytes"] = f"{notes[0].splitlines()[0]}; or skip-line: without these rows"


def _settings(keys: Mapping[str, Any]) -> TaskSettings:
    """Of a task that needs no names of columns."""
    return TaskSettings(type="token-classification", **keys)


def _rows(seen: Seen, keys: Mapping[str, Any], most: int) -> list[Mapping[str, Any]]:
    settings = _settings(keys)
    if seen.kind == "jsonl":
        table = open_jsonl(seen.path, settings.decoding, _quiet)
    elif seen.kind == "parquet":
        table = open_parquet(seen.path)
    else:
        table = open_delimited(seen.path, seen.kind, settings, labeled=True, report=_quiet, note=_quiet)
    rows = itertools.islice((row for row in table.rows if isinstance(row, Row)), most)
    found: list[Mapping[str, Any]] = [row.values for row in rows]
    if not found:
        raise UserError(f"{seen.path}: holds no rows that can be read{table.hint}")
    return found


def _quiet(line: str) -> None:
    """What a run says of its own."""


def _records(seen: Seen) -> tuple[str, list[list[str]]]:
    """The separator, and the first records."""
    full = [line for line in seen.lines if line.strip()]
    if seen.kind == "tsv":
        return "\t", [line.split("\t") for line in full]
    by_header = (each for each in _SEPARATORS if each in full[0])
    separator = csv_separator(full) or next(by_header, ",")
    return separator, csv_records(full, separator) or [full[0].split(separator)]


def _has_header(records: Sequence[Sequence[str]]) -> bool:
    """Whether the first record names the columns: short names, all different, none of them a value below."""
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
    """Made up: the longest column is the text."""
    width = len(records[0])
    sizes = [
        sum(len(record[column]) for record in records if len(record) == width) for column in range(width)
    ]
    longest = sizes.index(max(sizes))
    return ["text" if column == longest else f"column{column}" for column in range(width)]
