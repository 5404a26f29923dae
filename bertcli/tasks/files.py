"""A labeled file, in any format -> its examples; and one message about all of its unusable rows."""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bertcli.config.task import LABEL_LINES, Column, TaskSettings
from bertcli.corpus.encodings import mark_note
from bertcli.corpus.json_texts import is_json_list
from bertcli.corpus.streams import check_file_extras, deciding_mark, find_bad_lines, numbered_lines
from bertcli.samples import LABELED
from bertcli.system.errors import UserError
from bertcli.system.files import looked_in, refuse_special
from bertcli.system.remote import InputPath, find_file
from bertcli.system.terminal import Report, working
from bertcli.system.urls import check_url, is_remote
from bertcli.tasks.brat import holds_brat, is_brat
from bertcli.tasks.delimited import open_delimited
from bertcli.tasks.examples import Example
from bertcli.tasks.facts import facts_of
from bertcli.tasks.rows import format_hint, open_jsonl, open_label_lines, open_parquet
from bertcli.tasks.span_files import is_span_file
from bertcli.tasks.table import BadRow, LabeledFile, SkippedRow, Table, quiet
from bertcli.tokenizer.tokenizer import Tokenizer

_JSON = (".json", ".jsonl", ".ndjson")
TABLES = ("tsv", "csv", "jsonl", "parquet")
"""Formats that all tasks take."""
_BY_SUFFIX = {f".{name}": name for name in ("csv", "jsonl", "parquet", "conll")}
_BY_SUFFIX |= {".ndjson": "jsonl", ".bio": "conll", ".iob": "conll"}


def settings_of_texts(text: Column | list[Column] = "text", **keys: Any) -> TaskSettings:
    """How a file of texts or pairs is read that has nothing to do with a task."""
    return TaskSettings(type="classification", text=text, **keys)


def find_labeled_file(name: str) -> InputPath:
    """The file of the path or URL `name`, or of the bundled sample `name`. Raises `UserError` if there is
    none."""
    if is_remote(check_url(name)):
        return find_file(name)
    path = Path(name).expanduser()
    if path.is_file():
        return path
    refuse_special(path)
    if name in LABELED:
        return LABELED[name]
    if holds_brat(path):
        return path
    if path.is_dir():
        raise UserError(f"{name}: is a folder; name the file in it")
    siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, siblings, n=1)
    nearest = [str(path.parent / near[0])] if near else difflib.get_close_matches(name, LABELED, n=1)
    hint = f"did you mean {nearest[0]}?" if nearest else f"bundled samples: {', '.join(LABELED)}"
    raise UserError(f"{name}: no such file{looked_in(path)}; {hint}")


def check_extras(path: InputPath, settings: TaskSettings) -> None:
    """Raise `UserError` if a package that is needed to read the file is missing."""
    check_file_extras(path, file_format(LabeledFile(path, settings)) == "parquet")


def read_examples(
    path: InputPath,
    settings: TaskSettings,
    labeled: bool,
    skip_bad: bool = False,
    report: Report = quiet,
    note: Report = quiet,
    tokenizer: Tokenizer | None = None,
) -> Iterator[Any]:
    """The examples of a file, of the task's own class (`tasks.examples`), one at a time; a SQuAD file is read
    at once.

    Args:
        labeled, report, note: those of `LabeledFile`.
        skip_bad: leave out rows that cannot be used, and name them to `report`.
        tokenizer: the one that may decide about words (`TaskFacts.at_words`).

    Raises:
        UserError: a file that cannot be read as the settings say, with file and line; unusable rows, once
            all are counted.
    """
    file = LabeledFile(path, settings, labeled, report=report, note=note)
    format = file_format(file)
    if has_lines(file) and (mark := deciding_mark(path, settings.encoding)):
        note(mark_note(path, mark))
    if has_lines(file) and settings.bad_bytes != "refuse":
        for line in find_bad_lines(path, settings.decoding).notes(path, settings.decoding):
            note(line)
    rows = facts_of(settings.type).at_words(
        _read(file, format), settings, tokenizer, report=lambda line: report(f"{path}: {line}")
    )
    return keep_usable(rows, file, skip_bad)


def has_lines(file: LabeledFile) -> bool:
    """True if a file is one of text, whose lines can be damaged: not Parquet, not the files of brat."""
    format = file_format(file)
    return format != "parquet" and not (format == "spans" and is_brat(file.path))


def settings_found(settings: TaskSettings, name: str) -> TaskSettings:
    """The settings, with what the content of a training file decides: whether `format: auto` is `spans`.

    A model keeps them: it must divide each text into words as the training file was divided.
    """
    task, file = facts_of(settings.type), LabeledFile(find_labeled_file(name), settings)
    if settings.format != "auto" or "spans" not in task.formats:
        return settings
    found = {"format": "spans"} if file_format(file) == "spans" else {"words": settings.words or "given"}
    return TaskSettings.model_validate(settings.model_dump() | found)


def file_format(file: LabeledFile) -> str:
    """The format: `settings.format`; for `auto` that of the suffix, or `spans` by the content. An ambiguous
    suffix is decided by the task.

    A model that learned from lines with labels also predicts for tables, which are known by their suffix. So
    does a model that learned from spans, and it can be evaluated on them.
    """
    settings, labeled, task = file.settings, file.labeled, facts_of(file.settings.type)
    suffixes = [suffix.lower() for suffix in file.path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    is_table = suffix in (".tsv", ".json") or suffix in _BY_SUFFIX
    if settings.format == "spans" or (settings.format == "auto" and "spans" in task.formats):
        is_json = suffix in _JSON and (settings.format == "spans" or (labeled and is_span_file(file)))
        if is_brat(file.path) or is_json:
            return "spans"
    if settings.format == "spans" and not is_table:
        return "lines" if suffix == ".txt" and not labeled else "spans"
    if settings.format not in ("auto", "spans") and not (
        is_table and not labeled and settings.format in LABEL_LINES
    ):
        return settings.format
    by_suffix = _BY_SUFFIX.get(suffix)
    if by_suffix is not None and (by_suffix in TABLES or by_suffix in task.formats):
        return by_suffix
    if suffix == ".json":
        is_squad = "squad" in task.formats and not is_json_list(file.path, settings.decoding)
        return "squad" if is_squad else "jsonl"
    if suffix == ".txt" and (settings.is_plain_text or not labeled):
        return "lines"
    return task.usual_format(settings)


def _read(file: LabeledFile, format: str) -> Iterator[Example | BadRow]:
    task = facts_of(file.settings.type)
    if format == "lines":
        return _read_lines(file)
    if format in TABLES or format in LABEL_LINES:
        return task.table_examples(open_table(file, format))
    return task.own_examples[format](file)


def open_table(file: LabeledFile, format: str) -> Table:
    """The rows of a file in one of `TABLES` or `LABEL_LINES`. Raises `UserError` if it cannot be read."""
    if format == "jsonl":
        return open_jsonl(file)
    if format == "parquet":
        return open_parquet(file)
    return open_label_lines(file, format) if format in LABEL_LINES else open_delimited(file, format)


def _read_lines(file: LabeledFile) -> Iterator[Example]:
    """An example for each line. A blank line is an empty text in a file to predict. Raises `UserError` if a
    row of the task has several texts."""
    task = facts_of(file.settings.type)
    if not task.is_one_text(file.settings):
        raise UserError(
            f"{file.path}: a line of plain text is one text, but a row of this task has several; give a "
            "table (.tsv, .csv, .jsonl) with its columns"
        )
    for number, line in numbered_lines(file.path, file.settings.decoding):
        text, where = line.strip(), f"{file.path}, line {number}"
        if number == 1 and (hint := format_hint(text)):
            file.report(f"{where}: is read as text, from its first word on{hint}")
        if text or not file.labeled:
            yield task.example([text], where, file.settings)


NAMED = 5
"""Number of bad rows of a file that are named; the others are counted."""
UNUSABLE = ", which cannot be used"
"""The words after the number of bad rows, in the report on those that are left out."""


def keep_usable(found: Iterable[Example | BadRow], file: LabeledFile, skip_bad: bool) -> Iterator[Example]:
    """The examples of one file, one at a time.

    Bad rows are reported after the last row: with `skip_bad` to `report`, else as an error. A row with an
    empty text is bad in a labeled file. It is kept and reported in a file to predict, so that predictions and
    rows stay parallel.

    Raises:
        UserError: rows that cannot be used; a file without rows, or without any text.
    """
    path, report = file.path, file.report
    rows, skipped = 0, Counter[str]()
    bad, empty = _Noted(), _Noted()
    held_back: list[Example] = []  # a file without any text yields no example
    for example in _shown(found, path) if file.labeled else found:
        if isinstance(example, SkippedRow):
            skipped[str(example)] += 1
            continue
        rows += 1
        if not isinstance(example, BadRow) and not all(text.strip() for text in example.texts):
            empty.add(example.where)
            if file.labeled:
                example = BadRow(f"{example.where}: the text is empty")
        if isinstance(example, BadRow):
            bad.add(str(example))
            continue
        held_back.append(example)
        if empty.count < rows:
            yield from held_back
            held_back.clear()
    for why, count in skipped.items():
        report(f"{path}: left out {_share(count, rows + skipped.total())} {why}")
    if rows == 0:
        others = f" but those left out {' and '.join(skipped)}" if skipped else ""
        raise UserError(f"{path}: holds no rows{others}")
    if empty.count == rows:
        raise UserError(f"{path}: the text of every row is empty; does task.text name the right column?")
    if bad.count and not (skip_bad and bad.count < rows):
        raise UserError(_refusal(file, bad, rows))
    if bad.count:
        report(f"{path}: left out {_share(bad.count, rows)}{UNUSABLE}:{bad.named()}")
    if empty.count and not file.labeled:
        report(f"{path}: the text is empty in {_share(empty.count, rows)}:{empty.named()}")


def _shown(rows: Iterable[Any], path: InputPath) -> Iterator[Any]:
    """The rows; a command that is silent says how many were read."""
    count = 0
    with working(lambda: f"{path}: {count:,} rows read"):
        for count, row in enumerate(rows, start=1):  # noqa: B007 - the line reads it
            yield row


class _Noted:
    """A count, and the first few messages."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def add(self, what: str) -> None:
        self.count += 1
        if self.count <= NAMED:
            self.first.append(what)

    def named(self) -> str:
        """A line for each of the first messages, and one with the number of the others."""
        rest = self.count - len(self.first)
        return "".join(f"\n  {what}" for what in [*self.first, *([f"and {rest:,} more"] if rest else [])])


def _share(count: int, rows: int) -> str:
    return f"{count:,} of {rows:,} rows"


def _refusal(file: LabeledFile, bad: _Noted, rows: int) -> str:
    mend = "mend the file"
    if file.labeled and bad.count < rows:
        mend += ", or leave such rows out with task.skip_bad: true"
    if bad.count == 1:
        return f"{bad.first[0]}; {mend}"
    return f"{file.path}: {_share(bad.count, rows)} cannot be used:{bad.named()}\n{mend}"
