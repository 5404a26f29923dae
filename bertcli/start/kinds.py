"""The first lines of a file -> the kind of file it is, by its content."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from bertcli.config.finetune import LABEL_LINES
from bertcli.examples.conll_layout import DOCUMENT, conll_fields, holds_plain_tags, is_conllu
from bertcli.examples.label_lines import likely_format
from bertcli.examples.tags import is_tag

Kind = Literal[
    "text", "json-texts", "jsonl", "parquet", "tsv", "csv", "conll", "squad", "fasttext", "trec", "json"
]
"""jsonl: JSON objects, one a line or in a list; json-texts: a list of texts; json: JSON of another form."""
TEXTS = ("text", "json-texts")
"""Kinds that hold texts without labels."""
LABELED = ("tsv", "csv", "conll", "squad", "fasttext", "trec")
"""Kinds that hold labeled examples; jsonl and parquet hold either."""
_RECORDS = 200
_FEWEST = 3
"""Records with the same number of fields; fewer prove nothing."""
_SAME = 0.95
"""Share of the records with the same number of fields."""
_SEPARATORS = (",", ";", "|")


def kind_of_text(lines: Sequence[str], suffix: str) -> Kind:
    """The kind of a text file with these first lines; a suffix decides only where the content is like prose.

    Args:
        suffix: without that of a compression.
    """
    full = [line for line in lines if line.strip()]
    start = full[0].lstrip()[:1] if full else ""
    if start in "{[" and start and (kind := _kind_of_json(full)):
        return kind
    if (format := _label_lines(full)) is not None:
        return format
    if _is_conll(lines):
        return "conll"
    if _is_tsv(full) or (suffix in (".tsv", ".tab") and csv_separator(full) is None):
        return "tsv"
    if suffix == ".csv" or csv_separator(full) is not None:
        return "csv"
    return "text"


def _kind_of_json(full: Sequence[str]) -> Kind | None:
    start = "".join(full)[:200_000]
    if '"paragraphs"' in start and '"qas"' in start:
        return "squad"
    if isinstance(_object(full[0]), dict):
        return "jsonl"
    if start.startswith("[") and (kind := _kind_of_list("".join(full)[1:].lstrip())):
        return kind
    is_json = full[0].strip() in ("{", "[") or start[:2] in ('{"', "[[", "[]")
    return "json" if is_json else None


def _kind_of_list(inside: str) -> Kind | None:
    """The kind of a list in JSON by what stands in it first."""
    if inside.startswith("{"):
        return "jsonl"
    try:
        first, end = json.JSONDecoder().raw_decode(inside)
    except (ValueError, RecursionError):
        return None
    is_list_of_texts = isinstance(first, str) and inside[end:].lstrip()[:1] in (",", "]")
    return "json-texts" if is_list_of_texts else None


def _label_lines(full: Sequence[str]) -> Literal["fasttext", "trec"] | None:
    """Whether the lines begin with labels, as those of fastText or TREC."""
    some = full[:_RECORDS]
    for format in LABEL_LINES:
        if sum(likely_format(line.strip()) == format for line in some) >= max(_FEWEST, _SAME * len(some)):
            return format
    return None


def _object(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _is_conll(lines: Sequence[str]) -> bool:
    """Whether lines of as many columns, one of them of tags, are divided by blank lines."""
    rows = [conll_fields(line) for line in lines[:-1]]
    full = [row for row in rows if row and not row[0].startswith(("#", DOCUMENT))]
    if len(full) < _FEWEST or all(rows):
        return False
    if is_conllu(full):
        return True
    width, count = Counter(map(len, full)).most_common(1)[0]
    if width < 2 or count < _SAME * len(full):
        return False
    columns = [[row[column] for row in full if len(row) == width] for column in range(1, width)]
    has_tags = any(all(map(is_tag, column)) and set(column) != {"O"} for column in columns)
    return has_tags or holds_plain_tags([row for row in full if len(row) == width])


def _is_tsv(full: Sequence[str]) -> bool:
    tabs, count = Counter(line.count("\t") for line in full[:_RECORDS]).most_common(1)[0] if full else (0, 0)
    return tabs > 0 and len(full) >= _FEWEST and count >= _SAME * min(len(full), _RECORDS)


def csv_separator(full: Sequence[str]) -> str | None:
    """The character that divides the lines into records of as many fields; None: there is none."""
    for separator in _SEPARATORS:
        records = csv_records(full, separator)
        if len(records) < _FEWEST:
            continue
        width, count = Counter(map(len, records)).most_common(1)[0]
        if width > 1 and count >= _SAME * len(records) and len(records[0]) == width:
            return separator
    return None


def csv_records(full: Sequence[str], separator: str) -> list[list[str]]:
    """The first records; the last one, which may be cut, is left out if there are others."""
    try:
        records = list(csv.reader((f"{line}\n" for line in full[: 5 * _RECORDS]), delimiter=separator))
    except csv.Error:
        return []
    return [record for record in (records[:-1] or records) if record]
