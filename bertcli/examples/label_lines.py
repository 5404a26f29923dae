"""Lines that hold their labels before the text, as fastText's and TREC's do -> rows of a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bertcli.config.decoding import Decoding
from bertcli.config.finetune import TaskSettings
from bertcli.examples.bad_rows import BadRow
from bertcli.examples.table import Row, Table
from bertcli.text.streams import numbered_lines, read_lines

_FASTTEXT = re.compile(r"(?<!\S)__label__(\S*)\s*")
_TREC = re.compile(r"([^\s:]+):(\S+)(?:\s+|$)")
_USUAL = {"fasttext": re.compile(r"__label__\S"), "trec": re.compile(r"[A-Z]{2,}:[a-z]+\s+\S")}
"""How the lines of a file begin that is surely meant so."""
_OBJECT = re.compile(r'\{\s*"[^"]*"\s*:.*\}\s*$')
"""A line that is a JSON object."""
_NAMES = {"fasttext": "fastText", "trec": "TREC"}
_SAMPLE = 100
"""Lines that show whether a file of TREC to predict has labels."""


def open_label_lines(
    path: Path, format: str, settings: TaskSettings, labeled: bool, note: Callable[[str], None]
) -> Table:
    """The rows of a file with a text a line. In a labeled file, blank lines are no rows.

    fasttext (Joulin et al. 2016): words that begin with `__label__` are labels, wherever they stand, and the
    others are the text; columns `label` and `text`. trec (Li and Roth 2002): the first word is COARSE:fine;
    columns `label` (COARSE), `fine` (COARSE:fine) and `text`.

    A file to predict need not have labels. Whether one of TREC has them is decided by its first lines, and
    said to `note` if so.
    """
    numbered = ((number, line.strip()) for number, line in numbered_lines(path, settings.decoding))
    if labeled:
        numbered = ((number, line) for number, line in numbered if line)
    if format == "fasttext":
        return Table(path, ("label", "text"), _fasttext_rows(path, numbered, settings, labeled=labeled))
    has_labels = labeled or _all_begin_as_trec(path, settings.decoding)
    if has_labels and not labeled:
        note(f"{path}: the lines begin with labels, as in TREC; they are not read as text")
    return Table(path, ("label", "fine", "text"), _trec_rows(path, numbered, labeled, has_labels=has_labels))


def without_labels(line: str) -> str:
    """The text of a line of fastText's."""
    return _FASTTEXT.sub("", line).strip()


def format_hint(line: str) -> str:
    """What to set if a line that is read otherwise looks like fastText's, TREC's or JSON; else nothing."""
    format = likely_format(line)
    if format is None:
        return "; this looks like JSON: set task.format: jsonl" if _OBJECT.match(line) else ""
    return f"; this looks like a line of {_NAMES[format]}'s: set task.format: {format}"


def likely_format(line: str) -> str | None:
    """`fasttext` or `trec` if a line begins as theirs usually do; else None."""
    return next((name for name, usual in _USUAL.items() if usual.match(line)), None)


def _fasttext_rows(
    path: Path, lines: Iterator[tuple[int, str]], settings: TaskSettings, labeled: bool
) -> Iterator[Row | BadRow]:
    for number, line in lines:
        where, labels = f"{path}, line {number}", _FASTTEXT.findall(line)
        if labeled and (problem := _wrong_labels(labels, settings.multi_label)):
            yield BadRow(f"{where}: {problem}")
            continue
        value: Any = labels[0] if len(labels) == 1 and not settings.multi_label else labels
        own = {"label": value} if labels or labeled else {}
        yield Row(where, number, own | {"text": without_labels(line)})


def _wrong_labels(labels: list[str], multi_label: bool) -> str:
    if not all(labels):
        return "a label without a name; expected one as in __label__spam"
    if multi_label or len(labels) == 1:
        return ""
    found = f"{len(labels)} labels ({', '.join(labels)})" if labels else "no label"
    return f"{found}; expected one, as in __label__spam; for any number of them set task.multi_label: true"


def _trec_rows(
    path: Path, lines: Iterator[tuple[int, str]], labeled: bool, has_labels: bool
) -> Iterator[Row | BadRow]:
    for number, line in lines:
        where, found = f"{path}, line {number}", _TREC.match(line) if has_labels else None
        if found is not None:
            fine = f"{found[1]}:{found[2]}"
            yield Row(where, number, {"label": found[1], "fine": fine, "text": line[found.end() :]})
        elif labeled:
            yield BadRow(f"{where}: no label; expected COARSE:fine before the text, as in DESC:manner")
        else:
            yield Row(where, number, {"text": line})


def _all_begin_as_trec(path: Path, decoding: Decoding) -> bool:
    lines = (line.strip() for line in read_lines(path, decoding))
    return all(_TREC.match(line) for line in islice(filter(None, lines), _SAMPLE))
