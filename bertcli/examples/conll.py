"""A CoNLL file, with one word a line and its tag in a column -> sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from bertcli.config.finetune import TaskSettings
from bertcli.examples.bad_rows import BadRow, each
from bertcli.examples.conll_layout import DOCUMENT, Layout, Line, conll_lines, find_layout
from bertcli.examples.examples import TaggedExample
from bertcli.examples.tags import check_tag, read_tags
from bertcli.examples.words import join_words
from bertcli.text.bad_bytes import is_damaged


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

    Raises `UserError` as `conll_layout.find_layout` does.
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
    return each(whole, lambda sentence: _example(path, sentence, layout, settings=settings))


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


def _example(path: Path, sentence: list[Line], layout: Layout, settings: TaskSettings) -> TaggedExample:
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
