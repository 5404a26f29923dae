"""A corpus file -> the paragraphs (or sentences) of its documents, streamed."""

import itertools
import json
import re
from collections.abc import Iterator, Sequence

import sentencex

from bertcli.config.corpus import CorpusConfig
from bertcli.corpus.json_texts import read_json_texts
from bertcli.corpus.streams import LONGEST_LINE, Progress, import_extra, read_lines, silent
from bertcli.system.errors import UserError
from bertcli.system.remote import InputPath, openable

END = None
"""The mark of a document's end in a stream of paragraphs."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half an emoji, cut by the program that wrote the JSON; no text encoding can represent it."""

Paragraphs = Iterator[str | None]
"""Stripped, non-empty paragraphs in order, and `END` after each document that has any."""


def read_paragraphs(path: InputPath, corpus: CorpusConfig, progress: Progress = silent) -> Paragraphs:
    """The paragraphs of one file, by `corpus.format`; for the format `sentences`, its sentences.

    A document without text is left out. Memory holds at most one paragraph (`jsonl`, `parquet`: document) at
    a time. Raises a `UserError` that names the file and the place.
    """
    read = {"text": _read_text, "sentences": _read_text, "jsonl": _read_jsonl, "parquet": _read_parquet}
    return _tidy(read[corpus.format](path, corpus, progress))


def count_words(paragraphs: Sequence[str]) -> int:
    """The number of words between white space in stripped paragraphs; every command counts in this way."""
    joined = " ".join(paragraphs)
    if joined.isprintable() and "  " not in joined:  # true for most text, and many times faster than a split
        return joined.count(" ") + bool(joined)
    return len(joined.split())


def _tidy(paragraphs: Paragraphs) -> Paragraphs:
    """Strip paragraphs, drop empty ones, and end each document once."""
    inside = False
    for paragraph in paragraphs:
        if paragraph is None:
            if inside:
                yield END
            inside = False
        elif stripped := paragraph.strip():
            yield stripped
            inside = True
    if inside:
        yield END


def _read_text(path: InputPath, corpus: CorpusConfig, progress: Progress) -> Paragraphs:
    lines = read_lines(path, corpus.decoding(path), progress)
    if corpus.join_lines:
        yield from _join_lines(path, lines)
    elif corpus.document == "file" and corpus.format == "text":
        yield from lines
    else:
        for line in lines:
            yield END if not line or line.isspace() else line


def _join_lines(path: InputPath, lines: Iterator[str]) -> Paragraphs:
    """The paragraphs of wrapped lines; a blank line ends one. Words hyphenated at a line's end stay so."""
    paragraph: list[str] = []
    length = 0
    for line in lines:
        if line and not line.isspace():
            paragraph.append(line.strip())
            length += len(line)
            if length > LONGEST_LINE:
                raise UserError(
                    f"{path}: a paragraph of more than {LONGEST_LINE:,} characters; with join_lines: true, "
                    "a paragraph ends only at a blank line, and there is none"
                )
        elif paragraph:
            yield " ".join(paragraph)
            paragraph, length = [], 0
    if paragraph:
        yield " ".join(paragraph)


def _read_jsonl(path: InputPath, corpus: CorpusConfig, progress: Progress) -> Paragraphs:
    key = corpus.text_key
    for place, _, _, line in read_json_texts(path, corpus.decoding(path), progress):
        if not line or line.isspace():
            continue
        where = f"{path}, {place}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(
                f"{where}: not JSON: {error}; format: jsonl needs one object a line, or a list of objects"
            ) from None
        if not isinstance(value, str) and (not isinstance(value, dict) or key not in value):
            got = f"the keys {', '.join(value)}" if isinstance(value, dict) else type(value).__name__
            raise UserError(f"{where}: no key {key!r}, got {got}; name the text's key in corpus.text_key")
        text = value if isinstance(value, str) else value[key]
        if not isinstance(text, str):
            raise UserError(f"{where}: the text under {key!r} is not a string: {json.dumps(text)[:80]}")
        if "\\u" in line:
            text = _LONE_SURROGATE.sub("\ufffd", text)
        yield from text.split("\n")
        yield END


def _read_parquet(path: InputPath, corpus: CorpusConfig, progress: Progress) -> Paragraphs:
    parquet = import_extra("pyarrow.parquet", "parquet", f"{path}: format: parquet was asked for")
    arrow = import_extra("pyarrow", "parquet", f"{path}: format: parquet was asked for")
    column, row = corpus.text_key, 0
    try:
        with parquet.ParquetFile(openable(path)) as file:
            schema = file.schema_arrow
            if column not in schema.names:
                names = ", ".join(schema.names)
                raise UserError(
                    f"{path}: no column {column!r}, got {names}; name the text's column in corpus.text_key"
                )
            if (same := schema.names.count(column)) > 1:
                raise UserError(f"{path}: {same} columns have the name {column!r}; rename all but one")
            kind = schema.field(column).type
            if not (arrow.types.is_string(kind) or arrow.types.is_large_string(kind)):
                raise UserError(f"{path}: column {column!r} holds {kind}; text (string) was expected")
            for batch in file.iter_batches(batch_size=256, columns=[column]):
                for text in batch.column(0):
                    row += 1
                    yield from (text.as_py() or "").split("\n")
                    yield END
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}, row {row}, column {column!r}: not UTF-8 ({error.reason}); create the file again from "
            "its source"
        ) from None
    except (arrow.ArrowException, OSError) as error:
        raise UserError(f"{path}: not a readable Parquet file: {error}") from None
    progress(path.stat().st_size)


_OWN_RULES = """
en am ar bg bn ca da de el es fi fr gu hi hy it ja kk kn ml mr my nl pa pl pt ru sk ta te uk
""".split()  # noqa: SIM905
"""The languages of sentencex 1.0. It reads other codes by the rules of a related language, or English."""
_ABBREVIATIONS = """
Dr Prof z.B usw bzw Mr Mrs St vs etc Sr Sra Ud núm pág p.ej Sig dott ecc M Mme av Av dhr mevr bijv enz f.eks
bl.a kl nr inż np tzn itd tj napr atď г ул т.е проф акад вул тов обл д-р гр κ.ά π.χ κ.λπ esim mm د م ഡോ திரு
ዶ/ር տ դ мм тг б.з
""".split()  # noqa: SIM905
_PROBE = " ".join(f"Aa {abbreviation}. Bb cc." for abbreviation in _ABBREVIATIONS) + " x՞ y։ w؟ v。 u！ s;"
"""A text that sentencex splits differently for each set of rules, so that the splits identify the rules."""


_WINDOW, _AGAIN = 16_384, 2048
"""Characters of a window, and of its end. Hardly any paragraph with blanks is longer than a window."""


def rules_used(language: str) -> str:
    """The language whose rules `sentencex` uses for `language`: the same language, or the nearest it has."""
    if language in _OWN_RULES:
        return language
    found = split_sentences(_PROBE, language)
    return next((own for own in _OWN_RULES if split_sentences(_PROBE, own) == found), "en")


def split_sentences(paragraph: str, language: str) -> list[str]:
    """The sentences of a paragraph in order, stripped, without empty ones.

    `language` is a code from `config.corpus.language_code`.
    """
    return [sentence for raw in _segments(paragraph, language) if (sentence := raw.strip())]


def _segments(paragraph: str, language: str) -> Iterator[str]:
    """The sentences of sentencex, with the blanks between them.

    Its time grows with the square of a text without blanks between sentences (Chinese, Japanese), so a long
    paragraph is split window by window. The end of a window is split again in the next one, because quotation
    marks and brackets that are open there decide where sentences end.
    """
    start, size = 0, _WINDOW
    while start < len(paragraph):
        window = paragraph[start : start + size]
        found = list(sentencex.segment(language, window))  # pyright: ignore[reportAttributeAccessIssue]
        if start + size >= len(paragraph):
            yield from found
            return
        ends = itertools.accumulate(map(len, found[:-1]))
        sure = sum(end <= size - _AGAIN for end in ends)
        yield from found[:sure]
        start, size = start + sum(map(len, found[:sure])), _WINDOW if sure else 2 * size
