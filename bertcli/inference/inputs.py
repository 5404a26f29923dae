"""Texts from the command line, standard input or a file -> the examples to predict."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bertcli.config.load import check_config
from bertcli.config.task import TaskSettings
from bertcli.inference.lines import STANDARD_INPUT, Line, read_lines
from bertcli.system.errors import UserError
from bertcli.tasks.examples import ChoiceExample, Example, QuestionExample, TextExample, keep_usable
from bertcli.tasks.files import find_labeled_file, read_examples
from bertcli.tasks.rows import format_hint, without_labels
from bertcli.tasks.words import tagged_text

COMMAND_LINE = "the command line"


def read_inputs(
    texts: Sequence[str],
    file: str | None,
    settings: TaskSettings,
    report: Callable[[str], None],
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
    lines = read_lines(texts, None if file is None else Path(file))
    if is_table and (not texts or list(texts) == ["-"]):
        return _piped_file(settings, report)
    is_one_text = settings.type != "multiple-choice" and num_texts(settings) == 1
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
    return keep_usable(examples, STANDARD_INPUT, labeled=False, skip_bad=False, report=report)


def _piped_file(settings: TaskSettings, report: Callable[[str], None]) -> Iterator[Any]:
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


def _hinted(lines: Iterator[Line], report: Callable[[str], None]) -> Iterator[Line]:
    for number, line in enumerate(lines):
        if number == 0 and (hint := format_hint(line.text)):
            report(f"{line.where}: is read as text, from its first word on{hint}")
        yield line


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # too long for a path, or with characters that no path has
        return False


def num_texts(settings: TaskSettings) -> int:
    """How many texts a row has, without its choices."""
    if settings.type == "question-answering":
        return 2
    return 1 if settings.type == "token-classification" else len(settings.text_columns)


def _cells(line: str, settings: TaskSettings) -> list[str]:
    """The texts of a line; all are empty if the line is blank."""
    if line.strip() or settings.type == "multiple-choice":  # a blank line has no number of choices
        return line.split("\t")
    return [""] * num_texts(settings)


def example_of(
    parts: Sequence[str], where: str, settings: TaskSettings, how: str = "with a tab between them"
) -> Example:
    """The example of the texts of one row.

    Raises `UserError` for another number than the task reads; `how`: the way in which several are given.
    """
    wanted = num_texts(settings)
    is_choice = settings.type == "multiple-choice"
    if len(parts) < wanted + 2 if is_choice else len(parts) != wanted:
        expected = "a text" if wanted == 1 else "a pair of texts"
        if settings.type == "question-answering":
            expected = "a question and its context"
        if is_choice:
            expected += " and at least two choices"
        several = f", {how}" if wanted > 1 or is_choice else ""
        raise UserError(f"{where}: the model reads {expected}{several}; found {len(parts)}")
    texts = parts[:wanted]
    if settings.type == "token-classification":
        return tagged_text(where, {"text": texts[0]}, texts[0])
    if settings.type == "question-answering":
        question, context = texts
        columns = {"question": question, "context": context}
        return QuestionExample(where, columns, where, question=question, context=context, answers=None)
    names = ("text",) if wanted == 1 else ("text_a", "text_b")
    columns: dict[str, Any] = dict(zip(names, texts, strict=True))
    text_a, text_b = texts[0], texts[1] if wanted == 2 else None
    if is_choice:
        choices = tuple(parts[wanted:])
        return ChoiceExample(
            where, columns | {"choices": list(choices)}, text_a, text_b=text_b, choices=choices, label=None
        )
    return TextExample(where, columns, text_a, text_b=text_b, label=None)


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
    if is_pair:
        if settings.type in ("token-classification", "question-answering"):
            raise UserError(f"--pair: a {settings.type} model reads no pairs; leave it out")
        changes["text"] = ["text_a", "text_b"]
    if text and settings.type == "sentence-embedding":
        names = [_column(name) for name in text]
        changes["text"] = names if len(names) > 1 else names[0]
    elif text:
        expected = 2 if is_pair else num_texts(settings)
        if len(text) != expected:
            two = "two texts a row: name both columns, --text A --text B"
            reads = two if expected == 2 else "one text a row: name one column"
            pairs = "; if it was trained on pairs elsewhere, add --pair" if len(text) == 2 else ""
            raise UserError(f"--text: the model reads {reads}{pairs}")
        names = [_column(name) for name in text]
        changes["text"] = names if expected == 2 else names[0]
    return check_config(TaskSettings, settings.model_dump() | changes, "the options")


def _column(name: str) -> str | int:
    return int(name) if name.isdecimal() else name
