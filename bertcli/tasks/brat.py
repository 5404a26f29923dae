"""brat's standoff files: texts (`.txt`), each with its annotations (`.ann`) -> marked texts."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from bertcli.corpus.streams import read_text
from bertcli.system.errors import UserError
from bertcli.system.remote import InputPath
from bertcli.tasks.examples import MarkedText
from bertcli.tasks.span_files import read_json_spans, report_unread
from bertcli.tasks.span_offsets import Found, Span, marked
from bertcli.tasks.table import BadRow, LabeledFile, each

_ENTITY = re.compile(r"T\S*\t(\S+) ([\d ;]+)(?:\t(.*))?")
"""An entity: its number, its type, its places and its text. Places have semicolons between them where it has
gaps, or goes over the end of a line."""
_OTHER = {"R": "relations", "E": "events", "A": "attributes", "M": "attributes", "N": "links to databases"}
_OTHER |= {"*": "relations", "#": "notes"}
"""The first character of lines that are no entities -> what they are."""
_SHOWN = 40


def is_brat(path: InputPath) -> bool:
    """True for a folder, an `.ann`, or a `.txt` with its `.ann` beside it."""
    if not isinstance(path, Path):
        return False
    return path.is_dir() or path.suffix == ".ann" or (path.suffix == ".txt" and _ann(path).is_file())


def parts_of(path: InputPath) -> list[Path]:
    """The text and the annotations of one document of brat's; none for other files and folders."""
    if not isinstance(path, Path) or path.is_dir() or not is_brat(path):
        return []
    return [each for each in (path.with_suffix(".txt"), _ann(path)) if each.is_file()]


def holds_brat(folder: Path) -> bool:
    """True if a folder holds annotations of brat."""
    return folder.is_dir() and any(folder.glob("*.ann"))


def read_spans(file: LabeledFile) -> Iterator[MarkedText | BadRow]:
    """The examples of a file with spans: brat's, or JSON (`span_files.read_json_spans`)."""
    return read_brat(file) if is_brat(file.path) else read_json_spans(file)


def read_brat(file: LabeledFile) -> Iterator[MarkedText | BadRow]:
    """An example for each document: all of a folder in the order of their names, or a single one.

    A labeled text needs its annotations, and annotations need their text. `report` is called with the number
    of relations, events, attributes and notes, which are not read. Raises `UserError` for a folder without
    documents.
    """
    path = file.path
    assert isinstance(path, Path)
    texts = [path.with_suffix(".txt")]
    if path.is_dir():
        names = {each.stem for pattern in ("*.ann", "*.txt") for each in path.glob(pattern)}
        texts = [path / f"{name}.txt" for name in sorted(names)]
    if not texts:
        raise UserError(f"{path}: holds no .txt with its .ann, as brat writes them")
    unread = Counter[str]()

    def example(text: Path) -> MarkedText:
        found = _document(text, file)
        unread.update(found.unread)
        columns = {"document": text.stem, "text": found.text}
        return marked(str(text), columns, found)

    yield from each(texts, example)
    report_unread(file, unread)


def _ann(text: Path) -> Path:
    return text.with_suffix(".ann")


def _document(path: Path, file: LabeledFile) -> Found:
    if not path.is_file():
        raise BadRow(f"{_ann(path)}: its text {path.name} is missing; brat keeps both beside each other")
    text = read_text(path, file.settings.decoding)
    if not file.labeled:
        return Found(text, None)
    if not _ann(path).is_file():
        raise BadRow(
            f"{path}: its annotations {_ann(path).name} are missing; those of a text without entities are an "
            "empty file"
        )
    spans, unread = list[Span](), Counter[str]()
    lines = read_text(_ann(path), file.settings.decoding).split("\n")
    for number, line in enumerate(lines, start=1):
        line = line.rstrip("\r")
        if not line.strip():
            continue
        if (other := _OTHER.get(line[0])) is not None:
            unread[other] += 1
            continue
        spans.append(_entity(line, text, f"{_ann(path)}, line {number}"))
    return Found(text, spans, unread)


def _entity(line: str, text: str, where: str) -> Span:
    found = _ENTITY.fullmatch(line)
    if found is None:
        raise BadRow(
            f"{where}: {line[:_SHOWN]!r} is no line of brat's; expected T1, a tab, TYPE START END, a tab, "
            "and the text"
        )
    kind, places, said = found.groups()
    parts = [tuple(map(int, part.split())) for part in places.split(";")]
    if any(len(part) != 2 for part in parts):
        raise BadRow(f"{where}: {places!r} are not places; expected START END")
    gaps = ((one[1], other[0]) for one, other in pairwise(parts))
    if any(text[end:start].strip() or start < end for end, start in gaps):
        raise BadRow(
            f"{where}: the entity {line.split()[0]} has gaps ({places}); words in a row alone can be tagged: "
            "make it one span, or several, in brat"
        )
    return Span(parts[0][0], parts[-1][1], kind, text=said)
