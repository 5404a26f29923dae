"""A labeled file, or a file to predict, of any format -> its examples, one at a time."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from bertcli.config.finetune import LABEL_LINES, TaskSettings
from bertcli.errors import UserError
from bertcli.examples.bad_rows import BadRow, keep_usable
from bertcli.examples.choices import choice_examples
from bertcli.examples.conll import read_conll
from bertcli.examples.delimited import open_delimited
from bertcli.examples.examples import Example, SimilarExample, TextExample
from bertcli.examples.jsonl import open_jsonl
from bertcli.examples.label_lines import format_hint, open_label_lines
from bertcli.examples.parquet import open_parquet
from bertcli.examples.questions import question_examples
from bertcli.examples.similar import similar_examples
from bertcli.examples.squad import read_squad
from bertcli.examples.table import Table
from bertcli.examples.texts import text_examples
from bertcli.examples.words import tagged_examples, tagged_text
from bertcli.files import looked_in, refuse_special
from bertcli.samples import LABELED
from bertcli.text.decoders import mark_note
from bertcli.text.json_texts import is_json_list
from bertcli.text.streams import check_file_extras, deciding_mark, find_bad_lines, numbered_lines

Format = Literal["tsv", "csv", "jsonl", "parquet", "conll", "squad", "fasttext", "trec", "lines"]

_BY_SUFFIX: dict[str, Format] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".conll": "conll",
    ".bio": "conll",
    ".iob": "conll",
}
_FROM_TABLES: dict[str, Callable[[Table, TaskSettings, bool], Iterator[Example | BadRow]]] = {
    "classification": text_examples,
    "regression": text_examples,
    "token-classification": tagged_examples,
    "question-answering": question_examples,
    "multiple-choice": choice_examples,
    "sentence-embedding": similar_examples,
}


def find_labeled_file(name: str) -> Path:
    """A path, or the file of the bundled sample `name`. Raises `UserError` if there is neither."""
    path = Path(name).expanduser()
    if path.is_file():
        return path
    refuse_special(path)
    if name in LABELED:
        return LABELED[name]
    if path.is_dir():
        raise UserError(f"{name}: is a folder; name the file in it")
    siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    near = difflib.get_close_matches(path.name, siblings, n=1)
    nearest = [str(path.parent / near[0])] if near else difflib.get_close_matches(name, LABELED, n=1)
    hint = f"did you mean {nearest[0]}?" if nearest else f"bundled samples: {', '.join(LABELED)}"
    raise UserError(f"{name}: no such file{looked_in(path)}; {hint}")


def check_extras(path: Path, settings: TaskSettings) -> None:
    """Raise `UserError` if a package that is needed to read the file is missing."""
    check_file_extras(path, file_format(path, settings, True) == "parquet")


def read_examples(
    path: Path,
    settings: TaskSettings,
    labeled: bool,
    skip_bad: bool = False,
    report: Callable[[str], None] = lambda line: None,
    note: Callable[[str], None] = lambda line: None,
) -> Iterator[Any]:
    """The examples of a file, of the task's own class (`examples.examples`), one at a time (SQuAD's at once).

    Args:
        labeled: whether labels are read; a file to predict need not have them.
        skip_bad: leave out rows that cannot be used, and name them to `report`.
        report: called with what may be wrong with the file.
        note: called with how the file is read, if that had to be guessed.

    Raises:
        UserError: a file that cannot be read as the settings say, with file and line; unusable rows, once
            all are counted.
    """
    format = file_format(path, settings, labeled)
    if format != "parquet" and (mark := deciding_mark(path, settings.encoding)):
        note(mark_note(path, mark))
    if format != "parquet" and settings.bad_bytes != "refuse":
        for line in find_bad_lines(path, settings.decoding).notes(path, settings.decoding):
            note(line)
    found = _read(path, format, settings, labeled=labeled, report=report, note=note)
    return keep_usable(found, path, labeled, skip_bad=skip_bad, report=report)


def file_format(path: Path, settings: TaskSettings, labeled: bool) -> Format:
    """`settings.format`; for `auto` by the suffix, and where that is ambiguous by the task.

    A model that learned from lines with labels also answers tables: their suffix decides.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".zst"):
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    is_table = not labeled and (suffix in (".tsv", ".json") or suffix in _BY_SUFFIX)
    if settings.format != "auto" and not (is_table and settings.format in LABEL_LINES):
        return settings.format
    is_words = settings.type == "token-classification"
    if suffix in _BY_SUFFIX and (is_words or _BY_SUFFIX[suffix] != "conll"):
        return _BY_SUFFIX[suffix]
    if suffix == ".json":
        is_squad = settings.type == "question-answering" and not is_json_list(path, settings.decoding)
        return "squad" if is_squad else "jsonl"
    if suffix == ".txt" and (settings.is_plain_text or not labeled):
        return "lines"
    if is_words and not isinstance(settings.text, str):
        return "conll"
    return "tsv"


def _read(
    path: Path,
    format: Format,
    settings: TaskSettings,
    labeled: bool,
    report: Callable[[str], None],
    note: Callable[[str], None],
) -> Iterator[Example | BadRow]:
    if format == "conll":
        return read_conll(path, settings, labeled, report=report, note=note)
    if format == "squad":
        return read_squad(path, settings, labeled)
    if format == "lines":
        return _read_lines(path, settings, report, labeled=labeled)
    if format == "jsonl":
        table = open_jsonl(path, settings.decoding, report)
    elif format == "parquet":
        table = open_parquet(path)
    elif format in LABEL_LINES:
        table = open_label_lines(path, format, settings, labeled=labeled, note=note)
    else:
        table = open_delimited(path, format, settings, labeled=labeled, report=report, note=note)
    return _FROM_TABLES[settings.type](table, settings, labeled)


def _read_lines(
    path: Path, settings: TaskSettings, report: Callable[[str], None], labeled: bool
) -> Iterator[Example]:
    """A text a line; to predict, a blank line is an empty text. Raises `UserError` if a row is several."""
    if settings.type in ("question-answering", "multiple-choice") or len(settings.text_columns) > 1:
        raise UserError(
            f"{path}: a line of plain text is one text, but a row of this task has several; give a "
            "table (.tsv, .csv, .jsonl) with its columns"
        )
    for number, line in numbered_lines(path, settings.decoding):
        text, where = line.strip(), f"{path}, line {number}"
        if number == 1 and (hint := format_hint(text)):
            report(f"{where}: is read as text, from its first word on{hint}")
        if settings.type == "token-classification":
            yield tagged_text(where, {"text": text}, text)
        elif settings.type == "sentence-embedding":
            if text or not labeled:
                yield SimilarExample(where, {"text": text}, (text,), score=None)
        else:
            yield TextExample(where, {"text": text}, text, text_b=None, label=None)
