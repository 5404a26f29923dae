"""A CoNLL file, a word a line with its tag in the last column -> sentences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.labelled.bad_rows import BadRow, each
from bertcli.labelled.examples import TaggedExample
from bertcli.labelled.tags import check_tag, is_tag, to_bio
from bertcli.labelled.words import join_words
from bertcli.text.streams import read_lines

_DOCUMENT = "-DOCSTART-"
Line = tuple[int, list[str]]
"""A line's number, from 1, and its fields; none for a blank one."""


@dataclass(frozen=True)
class _Layout:
    """How many columns a line has, and the number of the word's and of the tag's (None: unlabelled)."""

    width: int
    word: int
    tag: int | None


def read_conll(path: Path, settings: TaskSettings, labelled: bool) -> Iterator[TaggedExample | BadRow]:
    """An example for each sentence; a blank line, or one that begins with -DOCSTART-, ends it.

    Tabs separate the columns of a line, or if it has none, blanks. `settings.text` and `settings.label` may
    number the columns; else the word is the first and the tag the last. A line before a sentence that begins
    with # is a comment if it has not the columns of the other lines, or no tag in the tag's.

    Raises `UserError` where the columns that the settings number are not there.
    """
    layout = _layout(path, settings, labelled)

    def example(sentence: list[Line]) -> TaggedExample:
        return _example(path, sentence, layout)

    return each(_sentences(_lines(path, settings.encoding), layout), example)


def _lines(path: Path, encoding: str) -> Iterator[Line]:
    for number, line in enumerate(read_lines(path, encoding, key="task.encoding"), start=1):
        line = line.strip(" \t\r")  # and nothing else: a no-break space can be a word
        parts = line.split("\t" if "\t" in line else " ")
        yield number, [part for part in (part.strip(" ") for part in parts) if part]


def _layout(path: Path, settings: TaskSettings, labelled: bool) -> _Layout:
    """By the first line that is a word for sure."""
    for _, fields in _lines(path, settings.encoding):
        if fields and fields[0] != _DOCUMENT and not fields[0].startswith("#"):
            break
    else:
        raise UserError(
            f"{path}: holds no sentences; a word a line was expected, a blank line between sentences"
        )
    width = len(fields)
    if labelled and width == 1:
        raise UserError(f"{path}: has one column ({fields[0]}); a word and its tag were expected")
    (word,) = settings.text_columns or (0,)
    tag = width - 1 if settings.label is None else settings.label
    for key, column in (("text", word), ("label", tag if labelled else 0)):
        if not isinstance(column, int) or column >= width:
            raise UserError(
                f"{path}: task.{key}: no column {column!r}; the columns of a CoNLL file have numbers, here 0 "
                f"to {width - 1}"
            )
    assert isinstance(word, int)
    return _Layout(width, word, tag if labelled and isinstance(tag, int) else None)


def _sentences(lines: Iterable[Line], layout: _Layout) -> Iterator[list[Line]]:
    sentence: list[Line] = []
    for number, fields in lines:
        if not fields or fields[0] == _DOCUMENT:
            if sentence:
                yield sentence
            sentence = []
        elif sentence or not _is_comment(fields, layout):
            sentence.append((number, fields))
    if sentence:
        yield sentence


def _is_comment(fields: list[str], layout: _Layout) -> bool:
    if not fields[0].startswith("#"):
        return False
    return len(fields) != layout.width or (layout.tag is not None and not is_tag(fields[layout.tag]))


def _example(path: Path, sentence: list[Line], layout: _Layout) -> TaggedExample:
    for number, fields in sentence:
        if len(fields) != layout.width:
            count = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
            raise BadRow(
                f"{path}, line {number}: {count} ({' '.join(fields)[:40]}), where other lines "
                f"have {layout.width}"
            )
    tags = None
    if layout.tag is not None:
        for number, fields in sentence:
            check_tag(fields[layout.tag], f"{path}, line {number}")
        tags = to_bio([fields[layout.tag] for _, fields in sentence])
    words = tuple(fields[layout.word] for _, fields in sentence)
    text, spans = join_words(words)
    return TaggedExample(f"{path}, line {sentence[0][0]}", {"text": text}, text, words, spans, tags)
