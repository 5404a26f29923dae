"""Files that are no CSV -> the rows of a table: JSON, Parquet, and lines that begin with their labels."""

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any

from bertcli.config.section import Decoding
from bertcli.corpus.json_texts import read_json_texts
from bertcli.corpus.streams import import_extra, numbered_lines, read_lines
from bertcli.system.errors import UserError
from bertcli.system.remote import InputPath, openable
from bertcli.tasks.table import BadRow, LabeledFile, Row, Table, check_names, each, without_blank_lines

NumberedLines = Iterator[tuple[int, str]]
"""The lines of a file, each with its number from 1."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character beyond U+FFFF, such as an emoji cut in two: no text encoding can hold it."""


def parse_json(text: str, path: InputPath, first_line: int = 1) -> Any:
    """The value of a JSON text that begins at `first_line` of a file. NaN, which pandas and Python write
    for a missing value, is None. Raises `BadRow` for invalid JSON."""
    try:
        value = json.loads(text, parse_constant=_constant)
        if "\\ud" in text or "\\uD" in text:  # half a character can be in JSON only as an escape
            value = json.loads(_LONE_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise BadRow(f"{path}, line {line}, column {error.colno}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise BadRow(f"{path}, line {first_line}: JSON that cannot be read: {error}") from None
    return value


def _constant(name: str) -> None:
    """None for NaN. Raises `ValueError` for Infinity and -Infinity, which Python also reads."""
    if name != "NaN":
        raise ValueError(f"{name} is not a JSON number")


_EXPECTED = "expected JSON objects, one a line or in a list"


def open_jsonl(file: LabeledFile) -> Table:
    """The rows; the keys of the first are the columns. Blank lines are no rows, and are reported.

    Raises `UserError` if the file is empty, or what comes first in it is no object.
    """
    rows = without_blank_lines(_rows(file.path, file.settings.decoding), file)
    first = next(rows, None)
    if first is None:
        raise UserError(f"{file.path}: is empty; {_EXPECTED}")
    if isinstance(first, BadRow):
        raise UserError(f"{first}; {_EXPECTED}")
    return Table(file, tuple(first.values), chain([first], rows))


def _rows(path: InputPath, decoding: Decoding) -> Iterator[Row | BadRow | None]:
    """The rows; None for a blank line."""

    def row(found: tuple[str, int, int, str]) -> Row | None:
        place, number, first_line, text = found
        if not text or text.isspace():
            return None
        where, value = f"{path}, {place}", parse_json(text, path, first_line)
        if not isinstance(value, dict):
            raise BadRow(f"{where}: {text.strip()[:40]} is not a JSON object")
        return Row(where, number, value)

    return each(read_json_texts(path, decoding), row)


BATCH = 1024
"""Number of rows that are decoded at once."""


def open_parquet(file: LabeledFile) -> Table:
    """The rows, with all columns. Raises `UserError` if pyarrow or the file is missing or damaged."""
    path = file.path
    parquet = import_extra("pyarrow.parquet", "parquet", f"{path} is a Parquet file")
    with _readable(path):
        names = check_names(path, parquet.read_schema(openable(path)).names)
    return Table(file, names, _parquet_rows(path, parquet, names))


def _parquet_rows(path: InputPath, parquet: Any, names: tuple[str, ...]) -> Iterator[Row]:
    number = 0
    with _readable(path), parquet.ParquetFile(openable(path)) as file:
        for batch in file.iter_batches(batch_size=BATCH):
            columns = [map(_plain, column.to_pylist()) for column in batch.columns]
            for values in zip(*columns, strict=True):
                number += 1
                yield Row(f"{path}, row {number}", number, dict(zip(names, values, strict=True)))


def _plain(value: Any, inner: bool = False) -> Any:
    """The value as JSON has it, so that it can be written again. Dates and decimals become text, and so do
    bytes in UTF-8, which some programs write for text. NaN, which pandas writes for a missing value, becomes
    None. Other bytes stay; as an `inner` value of a list or a mapping they become hexadecimal numbers."""
    if isinstance(value, dict):
        return {str(key): _plain(each, inner=True) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, inner=True) for each in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.hex() if inner else value
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


@contextmanager
def _readable(path: InputPath) -> Iterator[None]:
    arrow = import_extra("pyarrow", "parquet", f"{path} is a Parquet file")
    try:
        yield
    except UnicodeDecodeError as error:
        problem = f"a text is not UTF-8 ({error}); make the file again from its source"
        raise UserError(f"{path}: {problem}") from None
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).strip().split("\n")[0]
        raise UserError(f"{path}: not a readable Parquet file: {reason}") from None


_FASTTEXT = re.compile(r"(?<!\S)__label__(\S*)\s*")
_TREC = re.compile(r"([^\s:]+):(\S+)(?:\s+|$)")
_USUAL = {"fasttext": re.compile(r"__label__\S"), "trec": re.compile(r"[A-Z]{2,}:[a-z]+\s+\S")}
"""Usual beginnings of lines in these formats."""
_OBJECT = re.compile(r'\{\s*"[^"]*"\s*:.*\}\s*$')
"""A line that is a JSON object."""
_NAMES = {"fasttext": "fastText", "trec": "TREC"}
_SAMPLE = 100
"""Number of lines that show whether a TREC file to predict has labels."""


def open_label_lines(file: LabeledFile, format: str) -> Table:
    """The rows of a file with a text a line. Blank lines are no rows in a labeled file.

    fasttext (Joulin et al. 2016): words that begin with `__label__` are labels, wherever they stand, and the
    others are the text; columns `label` and `text`. trec (Li and Roth 2002): the first word is COARSE:fine;
    columns `label` (COARSE), `fine` (COARSE:fine) and `text`.

    A file to predict need not have labels. The first lines of a TREC file decide whether it has them; `note`
    is told if it has.
    """
    lines = ((number, line.strip()) for number, line in numbered_lines(file.path, file.settings.decoding))
    if file.labeled:
        lines = ((number, line) for number, line in lines if line)
    if format == "fasttext":
        return Table(file, ("label", "text"), _fasttext_rows(file, lines))
    has_labels = file.labeled or _all_begin_as_trec(file)
    if has_labels and not file.labeled:
        file.note(f"{file.path}: the lines begin with labels, as in TREC; they are not read as text")
    return Table(file, ("label", "fine", "text"), _trec_rows(file, lines, has_labels))


def without_labels(line: str) -> str:
    """The text of a fastText line, without its labels."""
    return _FASTTEXT.sub("", line).strip()


def format_hint(line: str) -> str:
    """A hint what to set if a line that is read otherwise looks like fastText, TREC or JSON; else ""."""
    format = likely_format(line)
    if format is None:
        return "; this looks like JSON: set task.format: jsonl" if _OBJECT.match(line) else ""
    return f"; this looks like a line of {_NAMES[format]}'s: set task.format: {format}"


def likely_format(line: str) -> str | None:
    """`fasttext` or `trec` if a line begins as usual in that format; else None."""
    return next((name for name, usual in _USUAL.items() if usual.match(line)), None)


def _fasttext_rows(file: LabeledFile, lines: NumberedLines) -> Iterator[Row | BadRow]:
    several = file.settings.multi_label
    for number, line in lines:
        where, labels = f"{file.path}, line {number}", _FASTTEXT.findall(line)
        if file.labeled and (problem := _wrong_labels(labels, several)):
            yield BadRow(f"{where}: {problem}")
            continue
        value: Any = labels[0] if len(labels) == 1 and not several else labels
        own = {"label": value} if labels or file.labeled else {}
        yield Row(where, number, own | {"text": without_labels(line)})


def _wrong_labels(labels: list[str], multi_label: bool) -> str:
    if not all(labels):
        return "a label without a name; expected one as in __label__spam"
    if multi_label or len(labels) == 1:
        return ""
    found = f"{len(labels)} labels ({', '.join(labels)})" if labels else "no label"
    return f"{found}; expected one, as in __label__spam; for any number of them set task.multi_label: true"


def _trec_rows(file: LabeledFile, lines: NumberedLines, has_labels: bool) -> Iterator[Row | BadRow]:
    for number, line in lines:
        where, found = f"{file.path}, line {number}", _TREC.match(line) if has_labels else None
        if found is not None:
            fine = f"{found[1]}:{found[2]}"
            yield Row(where, number, {"label": found[1], "fine": fine, "text": line[found.end() :]})
        elif file.labeled:
            yield BadRow(f"{where}: no label; expected COARSE:fine before the text, as in DESC:manner")
        else:
            yield Row(where, number, {"text": line})


def _all_begin_as_trec(file: LabeledFile) -> bool:
    lines = (line.strip() for line in read_lines(file.path, file.settings.decoding))
    return all(_TREC.match(line) for line in islice(filter(None, lines), _SAMPLE))
