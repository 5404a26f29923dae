"""The kind and the encoding of a file, by its content."""

import codecs
import csv
import itertools
import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from bertcli.config.task import LABEL_LINES
from bertcli.corpus.encodings import BAD_BYTES_KEPT, KEPT, is_damaged, wide_encoding
from bertcli.corpus.language import likely_language
from bertcli.system.errors import UserError
from bertcli.tasks.conll import DOCUMENT, conll_fields, holds_plain_tags, is_conllu
from bertcli.tasks.rows import likely_format
from bertcli.tasks.tags import is_tag

Kind = Literal[
    "text",
    "json-texts",
    "jsonl",
    "parquet",
    "tsv",
    "csv",
    "conll",
    "brat",
    "squad",
    "fasttext",
    "trec",
    "json",
]
"""Kinds of files. jsonl: JSON objects in lines or a list; json-texts: a list of texts; json: other JSON;
brat: a folder, or one document."""
TEXTS = ("text", "json-texts")
"""Kinds that hold texts without labels."""
LABELED = ("tsv", "csv", "conll", "brat", "squad", "fasttext", "trec")
"""Kinds that hold labeled examples; jsonl and parquet hold either."""
_RECORDS = 200
_FEWEST = 3
"""Least number of records with the same number of fields; fewer prove nothing."""
_SAME = 0.95
"""Least share of the records with the same number of fields."""
_SEPARATORS = (",", ";", "|")


def kind_of_text(lines: Sequence[str], suffix: str) -> Kind:
    """The kind of a text file with these first lines; the suffix decides only if the content is like prose.

    Args:
        suffix: the suffix, without that of a compression.
    """
    full = [line for line in lines if line.strip()]
    start = full[0].lstrip()[:1] if full else ""
    if start in "{[" and start and (kind := _kind_of_json(full)):
        return kind
    if (format := _label_lines(full)) is not None:
        return format
    if _is_conll(lines):
        return "conll"
    if _is_tsv(full) or (suffix in (".tsv", ".tab") and csv_separator(full) is None):
        return "tsv"
    if suffix == ".csv" or csv_separator(full) is not None:
        return "csv"
    return "text"


def _kind_of_json(full: Sequence[str]) -> Kind | None:
    start = "".join(full)[:200_000]
    if '"paragraphs"' in start and '"qas"' in start:
        return "squad"
    with suppress(ValueError, RecursionError):
        if isinstance(json.loads(full[0]), dict):
            return "jsonl"
    if start.startswith("[") and (kind := _kind_of_list("".join(full)[1:].lstrip())):
        return kind
    is_json = full[0].strip() in ("{", "[") or start[:2] in ('{"', "[[", "[]")
    return "json" if is_json else None


def _kind_of_list(inside: str) -> Kind | None:
    """The kind of a JSON list by its first element."""
    if inside.startswith("{"):
        return "jsonl"
    with suppress(ValueError, RecursionError):
        first, end = json.JSONDecoder().raw_decode(inside)
        if isinstance(first, str) and inside[end:].lstrip()[:1] in (",", "]"):
            return "json-texts"
    return None


def _label_lines(full: Sequence[str]) -> Literal["fasttext", "trec"] | None:
    """The format of lines that begin with labels, as in fastText or TREC; None: they do not."""
    some = full[:_RECORDS]
    for format in LABEL_LINES:
        if sum(likely_format(line.strip()) == format for line in some) >= max(_FEWEST, _SAME * len(some)):
            return format
    return None


def _is_conll(lines: Sequence[str]) -> bool:
    """True if blank lines divide lines with an equal number of columns, one of which holds tags."""
    rows = [conll_fields(line) for line in lines[:-1]]
    full = [row for row in rows if row and not row[0].startswith(("#", DOCUMENT))]
    if len(full) < _FEWEST or all(rows):
        return False
    if is_conllu(full):
        return True
    width, count = Counter(map(len, full)).most_common(1)[0]
    if width < 2 or count < _SAME * len(full):
        return False
    columns = [[row[column] for row in full if len(row) == width] for column in range(1, width)]
    has_tags = any(all(map(is_tag, column)) and set(column) != {"O"} for column in columns)
    return has_tags or holds_plain_tags([row for row in full if len(row) == width])


def _is_tsv(full: Sequence[str]) -> bool:
    if len(full) < _FEWEST:
        return False
    tabs, count = Counter(line.count("\t") for line in full[:_RECORDS]).most_common(1)[0]
    return tabs > 0 and count >= _SAME * min(len(full), _RECORDS)


def csv_separator(full: Sequence[str]) -> str | None:
    """The character that divides the lines into records with equal numbers of fields; None: there is none."""
    for separator in _SEPARATORS:
        records = csv_records(full, separator)
        if len(records) < _FEWEST:
            continue
        width, count = Counter(map(len, records)).most_common(1)[0]
        if width > 1 and count >= _SAME * len(records) and len(records[0]) == width:
            return separator
    return None


def csv_records(full: Sequence[str], separator: str) -> list[list[str]]:
    """The first records; the last one may be incomplete, so it is left out if there are others."""
    try:
        records = list(csv.reader((f"{line}\n" for line in full[: 5 * _RECORDS]), delimiter=separator))
    except csv.Error:
        return []
    return [record for record in (records[:-1] or records) if record]


_LINES = 100
"""Number of lines with letters beyond ASCII that identify a legacy encoding."""
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_BINARY = 0.002
"""Least share of control characters in a file that is not text."""
_LEGACY: tuple[tuple[str, str], ...] = (
    ("euc_jp", "ja"),
    ("shift_jis", "ja"),
    ("cp949", "ko"),
    ("big5", "zh"),
    ("gb18030", "zh"),
    ("cp1251", "ru uk be bg sr mk"),
    ("koi8-r", "ru"),
    ("cp866", "ru uk be"),
    ("cp1253", "el"),
    ("cp1255", "he"),
    ("cp1256", "ar fa ur"),
    ("cp874", "th"),
    ("cp1254", "tr"),
    ("cp1250", "pl cs sk hu hr sl ro bs"),
    ("cp1257", "lt lv et"),
    ("cp1258", "vi"),
    ("cp1252", "en de fr es it pt nl sv da no nb nn fi is ca gl eu ga af lb br oc la fo fy"),
)
"""Pairs of an encoding and the languages written in it; if two fit, the first is taken."""
_ODD = re.compile("[\x80-\x9f\ue000-\uf8ff\uff61-\uff9f\u3130-\u318f]")
"""C1 controls, private use, half-width katakana, single jamo: signs of a wrong encoding."""
_MIXED = re.compile("[a-zA-Z][\u0370-\u0e7f]|[\u0370-\u0e7f][a-zA-Z]")
"""A Latin letter next to a Greek, Cyrillic, Hebrew, Arabic or Thai one."""
_DAMAGED = 0.05
"""Largest share of lines, or of places beyond ASCII, that may be damaged in a UTF-8 text."""
_FEW = 0.2
"""Least number of UTF-8 lines per other line beyond ASCII; fewer may be chance."""
_STRANGE = 0.01
"""Share of characters that are capitals after a small letter, or next to another script."""


class Encoding(NamedTuple):
    """An encoding as Python names it, and what shows that it is not UTF-8; empty for UTF-8."""

    name: str
    proof: str = ""


def detect_encoding(data: bytes) -> Encoding | None:
    """The encoding of a text that begins with these bytes; None: they are no text.

    If no language is readable in any legacy encoding, it is cp1252, the commonest.

    Raises `UserError` if only parts of the text are UTF-8.
    """
    if (wide := wide_encoding(data)) is not None:
        return Encoding(wide, f"it begins with the bytes {data[:4].hex(' ')}")
    error = None
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)  # its last character may be cut
    except UnicodeDecodeError as found:
        error = found
    if len(_CONTROL.findall(data)) > _BINARY * len(data):
        return None
    if error is None or _is_mostly_utf8(data):
        return Encoding("utf-8")
    lines = [line for line in data.split(b"\n") if not line.isascii()][:_LINES]
    if lines and lines[-1:] == data.split(b"\n")[-1:]:
        lines = lines[:-1] or lines  # the last line may end within a character
    scores = {name: _score(lines, name, languages.split()) for name, languages in _LEGACY}
    best = max(scores, key=lambda name: scores[name])
    name = best if scores[best] else "cp1252"
    wrong = data[error.start : error.start + 1]
    around = data[max(0, error.start - 12) : error.start + 12].split(b"\n")
    line = next((part for part in around if wrong in part), wrong)
    return Encoding(
        name,
        f"byte {error.start} (0x{wrong.hex()}) is not UTF-8; in {name} the text there is "
        f"{line.decode(name, 'replace').strip()!r}",
    )


def _is_mostly_utf8(data: bytes) -> bool:
    """True if the text is UTF-8 with some damaged bytes.

    Letters beyond ASCII are hardly ever valid UTF-8 by chance. Raises `UserError` if only parts of the text
    are UTF-8.
    """
    text = codecs.getincrementaldecoder("utf-8")(BAD_BYTES_KEPT).decode(data)
    lines = [line for line in text.split("\n") if not line.isascii()]
    bad = sum(map(is_damaged, lines))
    good, all_lines = len(lines) - bad, text.count("\n") + 1
    if good > bad or (good >= _FEW * bad and bad <= _DAMAGED * all_lines):
        return True
    damaged = len(KEPT.findall(text))
    right = len(KEPT.sub("", text)) - len(text.encode("ascii", "ignore"))
    if right >= damaged / _DAMAGED:  # a text may have few, long lines
        return True
    if good > _FEW * bad:
        raise UserError(
            f"{good:,} lines are UTF-8 and {bad:,} are in another encoding; a file has one. Divide "
            "it, or convert those lines"
        )
    return False


def _score(lines: list[bytes], encoding: str, languages: list[str]) -> float:
    """How well the encoding fits: the share of lines in one of its languages.

    A few lines may hold bytes that are not in the encoding. The share is halved if most
    letters are capitals, many capitals follow a small letter, or scripts are mixed: the text then has another
    encoding.
    """
    all_lines = [line.decode(encoding, BAD_BYTES_KEPT) for line in lines]
    decoded = [line for line in all_lines if not is_damaged(line)]
    if len(lines) - len(decoded) > max(1, _DAMAGED * len(lines)):
        return 0.0
    text = "".join(decoded)
    if _ODD.search(text):
        return 0.0
    votes = [likely_language([line])[0] for line in decoded]
    fitting = sum(vote in languages for vote in votes) / max(1, sum(vote is not None for vote in votes))
    small, capital = (sum(map(is_kind, text)) for is_kind in (str.islower, str.isupper))
    inside = sum(a.islower() and b.isupper() for a, b in itertools.pairwise(text))
    strange = inside + 2 * len(_MIXED.findall(text))
    return fitting / 2 if capital > small or strange > _STRANGE * len(text) else fitting
