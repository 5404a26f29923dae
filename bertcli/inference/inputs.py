"""Texts from the command line, standard input or a file -> the examples to predict."""

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bertcli.config.load import check_config
from bertcli.config.task import TaskSettings
from bertcli.inference.lines import STANDARD_INPUT, Line, read_lines
from bertcli.system.errors import UserError
from bertcli.system.terminal import Report
from bertcli.system.urls import is_remote
from bertcli.tasks.examples import Example
from bertcli.tasks.files import find_labeled_file, keep_usable, read_examples
from bertcli.tasks.rows import format_hint, without_labels
from bertcli.tasks.supervised import task_class
from bertcli.tasks.table import LabeledFile

COMMAND_LINE = "the command line"


def read_inputs(
    texts: Sequence[str],
    file: str | None,
    settings: TaskSettings,
    report: Report,
    is_table: bool = False,
) -> Iterator[Any]:
    """The examples of `texts`, or of `file`, or of standard input if neither is given; without labels.

    Each of `texts` and each line of standard input is a row, if a row of the task is one text. Otherwise (a
    pair; question and context; text or pair with choices) `texts` together are one row, and a line has its
    texts with tabs between them. Files are read by `tasks.files.read_examples`.

    Rows with an empty text, such as blank lines, are kept and reported: answers and rows are parallel.

    Args:
        file: a path, the name of a bundled sample, or `-` for standard input.
        report: called with warnings and notes about the file.
        is_table: standard input is a file of `settings.format`, not a text a line.

    Raises:
        UserError: nothing to read; a path given as a text; (while iterating) a row that the task cannot
            read, with its place.
    """
    if file is not None and file != "-" and not texts:
        return read_examples(find_labeled_file(file), settings, labeled=False, report=report, note=report)
    if len(texts) == 1 and _is_file(texts[0]):
        raise UserError(f"{texts[0]}: is a file, not a text; give it as --input {texts[0]}")
    if len(texts) == 1 and is_remote(texts[0]) and not re.search(r"\s", texts[0]):
        report(f"{texts[0]}: is read as a text; for the rows of a file at this URL: --input {texts[0]}")
    lines = read_lines(texts, file)
    if is_table and (not texts or list(texts) == ["-"]):
        return _piped_file(settings, report)
    is_one_text = task_class(settings.type).is_one_text(settings)
    if texts and list(texts) != ["-"]:
        lines = list(lines)
        if empty := [line.where for line in lines if not line.text.strip()]:
            report(
                f"{COMMAND_LINE}: {len(empty):,} of {len(lines):,} texts are empty; the first is {empty[0]}"
            )
        if is_one_text:
            return (example_of([line.text], line.where, settings) for line in lines)
        parts = [line.text for line in lines]
        return iter([example_of(parts, COMMAND_LINE, settings, how="each in quotation marks")])
    if settings.format == "fasttext":
        lines = (replace(line, text=without_labels(line.text)) for line in lines)
    else:
        lines = _hinted(lines, report)
    examples = (
        example_of([line.text] if is_one_text else _cells(line.text, settings), line.where, settings)
        for line in lines
    )
    source = LabeledFile(Path(STANDARD_INPUT), settings, labeled=False, report=report)
    return keep_usable(examples, source, skip_bad=False)


def _piped_file(settings: TaskSettings, report: Report) -> Iterator[Any]:
    """The examples of a file in standard input. It is copied to disk, since a file is read more than once."""
    with TemporaryDirectory(prefix="bertcli-") as folder:
        path = Path(folder) / "input"
        with open(path, "wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)

        def named(text: str) -> str:
            return text.replace(str(path), STANDARD_INPUT)

        def say(line: str) -> None:
            report(named(line))

        try:
            for example in read_examples(path, settings, labeled=False, report=say, note=say):
                yield replace(example, where=named(example.where))
        except UserError as error:
            raise UserError(named(str(error))) from None


def _hinted(lines: Iterator[Line], report: Report) -> Iterator[Line]:
    for number, line in enumerate(lines):
        if number == 0 and (hint := format_hint(line.text)):
            report(f"{line.where}: is read as text, from its first word on{hint}")
        yield line


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a path, or with characters that no path has
        return False


def _cells(line: str, settings: TaskSettings) -> list[str]:
    """The texts of a line; all are empty if the line is blank."""
    task = task_class(settings.type)
    if line.strip() or task.has_choices:  # a blank line has no number of choices
        return line.split("\t")
    return [""] * task.num_texts(settings)


def example_of(
    parts: Sequence[str], where: str, settings: TaskSettings, how: str = "with a tab between them"
) -> Example:
    """The example of the texts of one row.

    Raises `UserError` for another number than the task reads; `how`: the way in which several are given.
    """
    task = task_class(settings.type)
    wanted = task.num_texts(settings)
    if len(parts) < wanted + 2 if task.has_choices else len(parts) != wanted:
        choices = " and at least two choices" if task.has_choices else ""
        several = "" if task.is_one_text(settings) else f", {how}"
        raise UserError(
            f"{where}: the model reads {task.reads(settings)}{choices}{several}; found {len(parts)}"
        )
    return task.example(parts, where, settings)


def adapt_settings(
    settings: TaskSettings,
    text: Sequence[str] | None = None,
    is_pair: bool = False,
    columns: str | None = None,
    **others: str | bool | None,
) -> TaskSettings:
    """A model's settings, with the user's values for the keys that describe a file.

    Args:
        text: names of the text columns, or their numbers from 0; as many as the model reads.
        is_pair: the model reads pairs, also if `settings` have one text.
        columns: all column names of a file without header, separated by commas; "": the file has a header.
        others: `label` (a name or a number), `format`, `positive_label` and so on; None: unchanged.

    Raises:
        UserError: another number of columns than the model reads, or an invalid value.
    """
    changes: dict[str, Any] = {key: value for key, value in others.items() if value is not None}
    if isinstance(label := changes.get("label"), str):
        changes["label"] = _column(label)
    if columns is not None:
        changes["columns"] = [name.strip() for name in columns.split(",")] if columns else None
    task = task_class(settings.type)
    if is_pair:
        if not task.takes_pairs:
            raise UserError(f"--pair: a {settings.type} model reads no pairs; leave it out")
        changes["text"] = ["text_a", "text_b"]
    if text:
        expected = 2 if is_pair else task.num_texts(settings)
        if len(text) != expected and not task.any_texts:
            reads = {
                1: "one text a row: name one column",
                2: "two texts a row: name both columns, --text A --text B",
            }.get(expected, f"{expected} texts a row: name each column, --text A --text B and so on")
            pairs = "; if it was trained on pairs elsewhere, add --pair" if len(text) == 2 else ""
            raise UserError(f"--text: the model reads {reads}{pairs}")
        names = [_column(name) for name in text]
        changes["text"] = names if len(names) > 1 else names[0]
    return check_config(TaskSettings, settings.model_dump() | changes, "the options")


def _column(name: str) -> str | int:
    return int(name) if name.isdecimal() else name
