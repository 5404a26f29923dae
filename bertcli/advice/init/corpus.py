"""The keys of a config's `corpus` for files of text, each with the observation behind it."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from bertcli.advice.init.files import Found, Seen, check_encodings
from bertcli.advice.init.task import SOME_ROWS, read_table
from bertcli.config.corpus import CorpusConfig, language_code
from bertcli.corpus.documents import read_paragraphs, split_sentences
from bertcli.corpus.files import CorpusFile
from bertcli.corpus.language import likely_language
from bertcli.corpus.sample import look_at_files, wrapped_files
from bertcli.corpus.streams import find_bad_lines
from bertcli.system.errors import UserError
from bertcli.tasks.columns import text_column

_LANGUAGE_LINES = 400
"""Number of lines whose language is identified."""
_SURE = 0.7
"""Share of lines in the commonest language; below it the language is marked as uncertain."""
_READ = 128 << 20
"""Number of characters of a file that are searched for bytes not in its encoding."""
MOST_OTHERS = 50
"""Largest number of files whose encodings a config names one by one."""
_SENTENCE_LINES = 500
_ONE_SENTENCE = 0.97
"""Least share of lines with one sentence at which each line is taken as a sentence."""


@dataclass(frozen=True)
class CorpusLook:
    """The form of a corpus.

    Attributes:
        config: the settings to read it.
        comments: key -> reason; a key whose comment holds "or" is uncertain.
        has_documents: True if it is known what ends a document.
        notes: lines for the user, about damaged bytes.
    """

    config: CorpusConfig
    comments: dict[str, str] = field(default_factory=dict)
    has_documents: bool = True
    notes: Sequence[str] = ()

    @property
    def keys(self) -> dict[str, Any]:
        """The keys that a config should have: those that differ from the default or have a comment."""
        values = self.config.model_dump(mode="json", exclude_defaults=True)
        given = {name: getattr(self.config, name) for name in self.comments if name not in values}
        return values | given


def look_at_corpus(found: Found) -> CorpusLook:
    """The way to read the files. Raises `UserError` for JSON or a table without a column of texts."""
    keys: dict[str, Any] = {"files": found.names}
    comments: dict[str, str] = {}
    check_encodings(found.seen, MOST_OTHERS)
    if found.encoding.name != "utf-8":
        keys["encoding"], comments["encoding"] = found.encoding
    if found.others:
        keys["encodings"], comments["encodings"] = found.others, "files in other encodings than the rest"
    damaged = [] if found.kind == "parquet" else list(_damaged(found, CorpusConfig(**keys)))
    if damaged:
        keys["bad_bytes"] = "replace"
        comments["bad_bytes"] = f"{damaged[0].splitlines()[0]}; or skip-line"
    if found.kind == "json-texts":
        keys["format"], comments["format"] = "jsonl", "a list of texts"
    elif found.kind in ("jsonl", "parquet"):
        keys["format"], comments["format"] = found.kind, _how(found.seen[0])
        keys["text_key"], comments["text_key"] = _text_key(found.seen[0])
    corpus = CorpusConfig(**keys)
    keys["language"], comments["language"] = _language(found, corpus)
    corpus = CorpusConfig(**keys)
    has_documents = True
    if corpus.format == "text":
        layout, reasons, has_documents = _layout(found, corpus)
        keys |= layout
        comments |= reasons
    return CorpusLook(CorpusConfig(**keys), comments, has_documents, notes=damaged)


def _damaged(found: Found, corpus: CorpusConfig) -> Iterator[str]:
    """Lines for the user about files with bytes that are not in their encodings."""
    for each in found.seen:
        decoding = corpus.decoding(each.path)._replace(bad_bytes="replace")
        bad = find_bad_lines(each.path, decoding, most=_READ)
        yield from bad.notes(each.path, decoding)


def _how(seen: Seen) -> str:
    if seen.kind == "parquet":
        return "by the file's first bytes"
    return "a list of objects" if "".join(seen.lines).lstrip().startswith("[") else "an object a line"


def _text_key(seen: Seen) -> tuple[str, str]:
    columns = read_table(seen, SOME_ROWS).columns
    text = text_column(columns)
    names = [column.name for column in columns]
    if text is None:
        strings = [column for column in columns if column.is_string]
        if not strings:
            raise UserError(f"{seen.path}: no key holds a text; its keys: {', '.join(names) or 'none'}")
        text = max(strings, key=lambda column: column.characters)
    others = [column.name for column in columns if column.is_text and column is not text]
    also = f"; or {', '.join(others)}" if others else ""
    beside = f" of the keys {', '.join(names)}" if len(names) > 1 else ""
    return text.name, f"{text.characters:,.0f} characters on average, the longest text{beside}{also}"


def _language(found: Found, corpus: CorpusConfig) -> tuple[str, str]:
    lines = list(_some_lines(found, corpus, _LANGUAGE_LINES))
    code, share, number = likely_language(lines)
    other = "or the code of your language"
    if code is None:
        return "en", f"not recognized: the text has fewer than 25 letters, or no words; {other}"
    try:
        code = language_code(code)
    except ValueError:
        return "en", f"most lines look like {code}, for which there is no code; {other}"
    doubt = "" if share >= _SURE else f"; uncertain, {other}"
    return code, f"{share:.0%} of the text of {number:,} lines is in it{doubt}"


def _some_lines(found: Found, corpus: CorpusConfig, number: int) -> Iterator[str]:
    """The first paragraphs of some files, evenly chosen."""
    chosen = found.seen[:: max(1, len(found.seen) // 20)]
    for each in chosen:
        paragraphs = (line for line in read_paragraphs(each.path, corpus) if line is not None)
        yield from itertools.islice(paragraphs, max(1, number // len(chosen)))


def _layout(found: Found, corpus: CorpusConfig) -> tuple[dict[str, Any], dict[str, str], bool]:
    """Keys for the ends of lines and documents, their comments, and True if ends of documents are marked."""
    looks, number = look_at_files(found.files, corpus), len(found.files)
    if wrapped := wrapped_files(looks):
        width = max(look.width for look in wrapped)
        reason = f"lines are cut at about column {width} ({len(wrapped)} of {len(looks)} files)"
        comments = {"document": f"a file is a document ({number:,}); blank lines end paragraphs"}
        return {"document": "file", "join_lines": True}, comments | {"join_lines": reason}, number > 1
    if number > 1 and 2 * sum(look.is_lone_paragraphs for look in looks) > len(looks):
        reason = f"{number:,} files; blank lines stand between single paragraphs; or blank-line"
        return {"document": "file"}, {"document": reason}, True
    if number > 1 and sum(look.documents for look in looks) <= len(looks):
        reason = f"a file is a document ({number:,}); they begin without blank lines"
        return {"document": "file"}, {"document": reason}, True
    has_blank = number > 1 or _has_two_documents(found.files[0], corpus)
    blank = f"blank lines end documents{'; or file' if number > 1 else ''}"
    comments = {"document": blank if has_blank else "one file without blank lines: one document"}
    if (reason := _is_a_sentence_a_line(found, corpus)) is not None:
        return {"format": "sentences"}, comments | {"format": reason}, has_blank
    return {"document": "blank-line"}, comments, has_blank


def _has_two_documents(file: CorpusFile, corpus: CorpusConfig) -> bool:
    """True if a blank line divides the first `_READ` characters of the text."""
    documents, left = 0, _READ
    for paragraph in read_paragraphs(file.path, corpus.of(file.source)):
        documents += paragraph is None
        left -= len(paragraph or "")
        if documents == 2 or left < 0:
            break
    return documents > 1


def _is_a_sentence_a_line(found: Found, corpus: CorpusConfig) -> str | None:
    """The reason to take each line as a sentence; None: a line is a paragraph."""
    lines = list(_some_lines(found, corpus, _SENTENCE_LINES))
    single = sum(len(split_sentences(line, corpus.language)) == 1 for line in lines)
    if len(lines) < 20 or single < _ONE_SENTENCE * len(lines):
        return None
    return f"{single:,} of {len(lines):,} lines are one sentence; or text: a paragraph a line"
