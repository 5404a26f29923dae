"""The rows of a table, the task of a file in a known format, and the keys to read them."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from bertcli.advice.init.files import Seen, suffix_of
from bertcli.advice.init.kinds import csv_records, csv_separator
from bertcli.config.section import Decoding
from bertcli.config.task import LABEL_LINES, TaskSettings
from bertcli.corpus.streams import find_bad_lines
from bertcli.system.errors import UserError
from bertcli.tasks.delimited import SEPARATORS, find_separator, open_delimited, separator_in
from bertcli.tasks.files import file_format
from bertcli.tasks.rows import open_jsonl, open_label_lines, open_parquet
from bertcli.tasks.table import Row
from bertcli.tasks.tags import DOCUMENT, conll_fields, is_conllu, tag_columns

SOME_ROWS, MOST_ROWS = 2_000, 100_000
"""Numbers of rows that are read to recognize a file, and to recognize its task."""
_NAME = re.compile(r"[^\W\d][\w .,()/-]{0,39}|#\d[\w .]{0,39}")
_ANY = TaskSettings(type="classification", text="text")
_SEPARATORS = SEPARATORS | {"|": "vertical bars"}


@dataclass(frozen=True)
class TableLook:
    """The rows of a table.

    Attributes:
        rows: the first rows: column -> value.
        is_named: True if the columns have their own names.
        keys: keys of `task` that are needed to read the file: format, columns, encoding.
        comments: key -> reason.
        how: words on how the file is read.
    """

    rows: list[Mapping[str, Any]]
    is_named: bool
    keys: dict[str, Any] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    how: str = ""


def read_table(seen: Seen, most: int = MOST_ROWS) -> TableLook:
    """The table, with at most `most` rows. Raises `UserError` if it cannot be read."""
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
    """Add the key `bad_bytes` if the file has bytes that are not in its encoding."""
    decoding = Decoding(seen.encoding.name, "replace", "task")
    if seen.kind != "parquet" and (notes := find_bad_lines(seen.path, decoding).notes(seen.path, decoding)):
        keys["bad_bytes"] = "replace"
        comments["bad_bytes"] = f"{notes[0].splitlines()[0]}; or skip-line: without these rows"


def _settings(keys: Mapping[str, Any]) -> TaskSettings:
    """The settings with `keys`, for a task that needs no names of columns."""
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
    """Drop a line that a run would print."""


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


_UPOS = 3
"""The index of the column of parts of speech in CoNLL-U."""
_CHUNKS = frozenset(("", "NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"))
"""The types of CoNLL-2000's chunks."""
FORMATS = ("conll", "squad", *LABEL_LINES)


@dataclass(frozen=True)
class TaskLook:
    """The task of a labeled file.

    Attributes:
        keys: keys of `task` in their order, without the files.
        comments: key -> reason.
        summary: words on what the file holds.
    """

    keys: dict[str, Any]
    comments: dict[str, str] = field(default_factory=dict)
    summary: str = ""


def task_of_format(seen: Seen) -> TaskLook:
    """The task of a file of one of `FORMATS`."""
    make = {"conll": _conll, "squad": _squad, "fasttext": _fasttext, "trec": _trec}[seen.kind]
    look = make(seen)
    if seen.encoding.name != "utf-8":
        look.keys["encoding"], look.comments["encoding"] = seen.encoding
    bad_bytes_keys(seen, look.keys, look.comments)
    return look


def _conll(seen: Seen) -> TaskLook:
    """The task of a CoNLL file. Of several columns of tags, the one that tags the most words is taken: the
    outer entities, if entities are nested. Chunks do not count as entities."""
    keys: dict[str, Any] = {"type": "token-classification"}
    comments = {"type": "a word and its tag a line, in CoNLL's form"}
    rows = _conll_rows(seen)
    last = len(rows[0]) - 1
    tags = {column: [fields[column] for fields in rows] for column in tag_columns(rows)}
    if is_conllu(rows) and not tags:
        keys |= {"label": _UPOS, "tag_scheme": "plain"}
        comments["label"] = f"the parts of speech; or {_UPOS + 1}: those of the language"
        return TaskLook(keys, comments, "CoNLL-U")
    if not tags:
        keys["tag_scheme"] = "plain"
        comments["tag_scheme"] = "the tags are names, each of one word, such as parts of speech"
        return TaskLook(keys, comments, "CoNLL")
    tagged = {column: len(found) - found.count("O") for column, found in tags.items()}
    entities = [column for column, found in tags.items() if not {tag[2:] for tag in found} <= _CHUNKS]
    best = max(entities or tags, key=lambda column: (tagged[column], column))
    if best != last:
        keys["label"] = best
    others = ", ".join(str(column) for column in tags if column != best)
    summary = f"CoNLL, tags in column {best}, counted from 0"
    if others:
        summary += f"; there are others in {others}"
        comments["label" if best != last else "type"] = (
            f"tags {tagged[best]:,} words here; or label: {others}"
        )
    return TaskLook(keys, comments, summary)


def _conll_rows(seen: Seen) -> list[list[str]]:
    """The fields of the first lines that hold words and have the usual number of fields."""
    rows = [fields for line in seen.lines[:-1] if (fields := conll_fields(line))]
    rows = [fields for fields in rows if not fields[0].startswith(("#", DOCUMENT))]
    width = Counter(map(len, rows)).most_common(1)[0][0]
    return [fields for fields in rows if len(fields) == width]


def _squad(seen: Seen) -> TaskLook:
    keys = {"type": "question-answering"} | ({} if suffix_of(seen.path) == ".json" else {"format": "squad"})
    return TaskLook(keys, {"type": "questions with answers in their texts, in SQuAD's JSON"}, "SQuAD JSON")


def _fasttext(seen: Seen) -> TaskLook:
    rows = _format_rows(seen)
    several = sum(len(row.values["label"]) != 1 for row in rows)
    keys: dict[str, Any] = {"type": "classification", "format": "fasttext"}
    comments = {"type": "labels as in fastText: __label__NAME before each text"}
    if several:
        keys["multi_label"] = True
        comments["multi_label"] = (
            f"{several:,} of {len(rows):,} lines have several labels or none; false: one a line"
        )
    return TaskLook(keys, comments, "lines of fastText")


def _trec(seen: Seen) -> TaskLook:
    rows = _format_rows(seen)
    coarse, fine = ({row.values[name] for row in rows} for name in ("label", "fine"))
    keys = {"type": "classification", "format": "trec", "label": "label"}
    comments = {
        "type": "labels as in TREC: COARSE:fine before each text",
        "label": f"the first part: {len(coarse)} labels; or fine: both parts, {len(fine)} labels",
    }
    return TaskLook(keys, comments, "lines of TREC")


def _format_rows(seen: Seen) -> list[Row]:
    settings = TaskSettings(
        type="classification",
        format=seen.kind,  # pyright: ignore[reportArgumentType]
        multi_label=True,
        encoding=seen.encoding.name,
    )
    table = open_label_lines(seen.path, seen.kind, settings, labeled=True, note=lambda line: None)
    return [row for row in islice(table.rows, MOST_ROWS) if isinstance(row, Row)]
