"""Running text, rows of a table, or a CoNLL file -> words with their tags."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bertcli.config.task import TaskSettings
from bertcli.corpus.encodings import is_damaged
from bertcli.tasks.columns import Recognized, Sample
from bertcli.tasks.examples import TaggedExample
from bertcli.tasks.label_cells import written_list
from bertcli.tasks.lists import recognize_tags
from bertcli.tasks.table import BadRow, Row, Table, each, scalar_text
from bertcli.tasks.tags import (
    DOCUMENT,
    Layout,
    Line,
    check_tag,
    conll_fields,
    conll_lines,
    find_layout,
    is_conllu,
    read_tags,
    tag_columns,
)

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
        word_start, word_end = start, end
        while word_start < end and text[word_start] in _OPENING:
            word_start += 1
        while word_end > word_start and text[word_end - 1] in _CLOSING:
            word_end -= 1
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


def tagged_text(where: str, columns: Mapping[str, Any], text: str) -> TaggedExample:
    """A running text without tags."""
    spans = word_spans(text)
    return TaggedExample(
        where, columns, text, words=tuple(text[a:b] for a, b in spans), spans=spans, tags=None
    )


def tagged_examples(table: Table, settings: TaskSettings, labeled: bool) -> Iterator[TaggedExample | BadRow]:
    """An example for each row: a text; or words beside their tags, as lists, or as texts with blanks between.

    Labeled rows need the tags. Raises `UserError` if a column is missing.
    """
    (given,) = settings.text_columns or ("text",)
    column = table.column(given, "task.text")
    label = table.label(settings.label) if labeled else None
    return each(table.rows, lambda row: _example(row, column, label, settings=settings))


def _example(row: Row, column: str, label: str | None, settings: TaskSettings) -> TaggedExample:
    if label is None and not isinstance(row.value(column), list):
        return tagged_text(row.where, row.values, row.text(column))
    words = _list(row, column)
    text, spans = join_words(words)
    if label is None:
        return TaggedExample(row.where, row.values, text, words=words, spans=spans, tags=None)
    tags = _list(row, label)
    if len(tags) != len(words):
        raise BadRow(
            f"{row.where}: {len(words)} words, but {len(tags)} tags; expected a tag for each word, in lists, "
            "in texts with blanks between, or in lines of a CoNLL file (task.format: conll)"
        )
    bio = read_tags(tags, settings, row.where)
    return TaggedExample(row.where, row.values, text, words=words, spans=spans, tags=bio)


def _list(row: Row, column: str) -> tuple[str, ...]:
    value, where = row.value(column), f"{row.where}, column {column!r}"
    if isinstance(value, str):
        listed = written_list(value)
        value = value.split() if listed is None else listed
    if not isinstance(value, list):
        raise BadRow(f"{where}: neither a list nor a text; expected a tag for each word")
    return tuple(scalar_text(item, where) for item in value)


def read_conll(
    path: Path,
    settings: TaskSettings,
    labeled: bool,
    report: Callable[[str], None],
    note: Callable[[str], None],
) -> Iterator[TaggedExample | BadRow]:
    """An example for each sentence. A blank line, or one that begins with -DOCSTART-, ends a sentence.

    Columns are separated by tabs, or in a line without tabs by blanks. `settings.text` and `settings.label`
    may number them. By default the word is in the first column, or in the second if the first numbers the
    words, and the tag is in the last. `note` is called with the columns, and `report` with others that could
    hold the tags. A line before a sentence that begins with # is a comment if its columns do not fit those
    of the other lines. Lines of CoNLL-U for multiword tokens (`1-2`) and empty nodes (`8.1`) are skipped.

    Raises `UserError` as `tags.find_layout` does.
    """
    layout = find_layout(path, settings, labeled)
    if labeled or layout.counting:
        note(f"{path}: {layout.line()}")
    if doubt := layout.doubt():
        report(f"{path}: {doubt}")

    sentences = _sentences(conll_lines(path, settings.decoding), layout)
    whole = (
        lines for lines in sentences if not any(is_damaged(word) for _, words in lines for word in words)
    )
    return each(whole, lambda sentence: _sentence(path, sentence, layout, settings=settings))


def _sentences(lines: Iterable[Line], layout: Layout) -> Iterator[list[Line]]:
    sentence: list[Line] = []
    for number, fields in lines:
        if not fields or fields[0] == DOCUMENT:
            if sentence:
                yield sentence
            sentence = []
        elif layout.is_word(fields) and (sentence or not layout.is_comment(fields)):
            sentence.append((number, fields))
    if sentence:
        yield sentence


def _sentence(path: Path, sentence: list[Line], layout: Layout, settings: TaskSettings) -> TaggedExample:
    for number, fields in sentence:
        if len(fields) != layout.width:
            count = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
            raise BadRow(
                f"{path}, line {number}: {count} ({' '.join(fields)[:40]}), where other lines "
                f"have {layout.width}"
            )
    tags = None
    if layout.tag is not None:
        if settings.tag_scheme == "bio" and settings.label_names is None:
            for number, fields in sentence:
                check_tag(fields[layout.tag], f"{path}, line {number}")
        found = [fields[layout.tag] for _, fields in sentence]
        tags = read_tags(found, settings, f"{path}, line {sentence[0][0]}")
    words = tuple(fields[layout.word] for _, fields in sentence)
    text, spans = join_words(words)
    return TaggedExample(
        f"{path}, line {sentence[0][0]}", {"text": text}, text, words=words, spans=spans, tags=tags
    )


_UPOS = 3
"""The index of the column of parts of speech in CoNLL-U."""
_CHUNKS = frozenset(("", "NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"))
"""The types of CoNLL-2000's chunks."""


def recognize_tagged_words(sample: Sample) -> Recognized | None:
    """The keys of `task`; None if the file holds no words with their tags. Raises `UserError` for numbers."""
    return _conll(sample.lines) if sample.format == "conll" else recognize_tags(sample)


def _conll(lines: Sequence[str]) -> Recognized:
    """The task of a CoNLL file. Of several columns of tags, the one that tags the most words is taken: the
    outer entities, if entities are nested. Chunks do not count as entities."""
    keys: dict[str, Any] = {"type": "token-classification"}
    comments = {"type": "a word and its tag a line, in CoNLL's form"}
    rows = _conll_rows(lines)
    last = len(rows[0]) - 1
    tags = {column: [fields[column] for fields in rows] for column in tag_columns(rows)}
    if is_conllu(rows) and not tags:
        keys |= {"label": _UPOS, "tag_scheme": "plain"}
        comments["label"] = f"the parts of speech; or {_UPOS + 1}: those of the language"
        return Recognized(keys, comments, "CoNLL-U")
    if not tags:
        keys["tag_scheme"] = "plain"
        comments["tag_scheme"] = "the tags are names, each of one word, such as parts of speech"
        return Recognized(keys, comments, "CoNLL")
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
    return Recognized(keys, comments, summary)


def _conll_rows(lines: Sequence[str]) -> list[list[str]]:
    """The fields of the first lines that hold words and have the usual number of fields."""
    rows = [fields for line in lines[:-1] if (fields := conll_fields(line))]
    rows = [fields for fields in rows if not fields[0].startswith(("#", DOCUMENT))]
    width = Counter(map(len, rows)).most_common(1)[0][0]
    return [fields for fields in rows if len(fields) == width]
