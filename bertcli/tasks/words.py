"""Running text, or the rows of a table -> words with their tags."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertcli.config.task import TaskSettings
from bertcli.tasks.examples import TaggedExample
from bertcli.tasks.label_cells import written_list
from bertcli.tasks.table import BadRow, Row, Table, each, scalar_text
from bertcli.tasks.tags import read_tags

Span = tuple[int, int]

_CHUNK = re.compile(r"\S+")
_OPENING = "([{\"'“‘„«¿¡"
_CLOSING = ".,;:!?)]}\"'”’»…"


def word_spans(text: str) -> tuple[Span, ...]:
    """The words of a text, as (start, end) in characters.

    White space separates words. Punctuation at the start or end of a word is divided from it, as in the
    training files of taggers: brackets and quotes before it; brackets, quotes and sentence marks after it.
    A word is never divided inside (`U.S.-led`, `@name`), and punctuation alone is one word (`:)`).
    """
    spans: list[Span] = []
    for chunk in _CHUNK.finditer(text):
        start, end = chunk.span()
        opened = chunk[0].lstrip(_OPENING)
        word_start, word_end = end - len(opened), end - len(opened) + len(opened.rstrip(_CLOSING))
        if word_start == word_end:
            spans.append((start, end))
            continue
        spans += [(i, i + 1) for i in range(start, word_start)]
        spans.append((word_start, word_end))
        spans += [(i, i + 1) for i in range(word_end, end)]
    return tuple(spans)


def join_words(words: Sequence[str]) -> tuple[str, tuple[Span, ...]]:
    """The words with a blank between them, and the span of each."""
    spans, start = [], 0
    for word in words:
        spans.append((start, start + len(word)))
        start += len(word) + 1
    return " ".join(words), tuple(spans)


def running_text(where: str, columns: Mapping[str, Any], text: str) -> TaggedExample:
    """A running text without tags."""
    spans = word_spans(text)
    words = tuple(text[start:end] for start, end in spans)
    return TaggedExample(where, columns, (text,), words=words, spans=spans, tags=None)


def tagged_examples(table: Table) -> Iterator[TaggedExample | BadRow]:
    """An example for each row: a text; or words beside their tags, as lists, or as texts with blanks between.

    Labeled rows need the tags. Raises `UserError` if a column is missing.
    """
    (given,) = table.file.settings.text_columns or ("text",)
    column, label = table.column(given, "task.text"), table.label()
    return each(table.rows, lambda row: _example(row, column, label, settings=table.file.settings))


def _example(row: Row, column: str, label: str | None, settings: TaskSettings) -> TaggedExample:
    if label is None and not isinstance(row.value(column), list):
        return running_text(row.where, row.values, row.text(column))
    words = _list(row, column)
    text, spans = join_words(words)
    tags = None if label is None else _list(row, label)
    if tags is not None and len(tags) != len(words):
        raise BadRow(
            f"{row.where}: {len(words)} words, but {len(tags)} tags; expected a tag for each word, in lists, "
            "in texts with blanks between, or in lines of a CoNLL file (task.format: conll)"
        )
    bio = None if tags is None else read_tags(tags, settings, row.where)
    return TaggedExample(row.where, row.values, (text,), words=words, spans=spans, tags=bio)


def _list(row: Row, column: str) -> tuple[str, ...]:
    value, where = row.value(column), f"{row.where}, column {column!r}"
    if isinstance(value, str):
        listed = written_list(value)
        value = value.split() if listed is None else listed
    if not isinstance(value, list):
        raise BadRow(f"{where}: neither a list nor a text; expected a tag for each word")
    return tuple(scalar_text(item, where) for item in value)
