"""Files whose format is the task: CoNLL, SQuAD, fastText and TREC -> the keys of a config's `task`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from bertcli.config.finetune import LABEL_LINES, TaskSettings
from bertcli.examples.conll_layout import DOCUMENT, conll_fields, is_conllu, tag_columns
from bertcli.examples.label_lines import open_label_lines
from bertcli.examples.table import Row
from bertcli.start.files import Seen, suffix_of
from bertcli.start.tables import MOST_ROWS, bad_bytes_keys

_UPOS = 3
"""The column of parts of speech in CoNLL-U."""
_CHUNKS = frozenset(("", "NP", "VP", "PP", "ADJP", "ADVP", "SBAR", "PRT", "CONJP", "INTJ", "LST", "UCP"))
"""The types of CoNLL-2000's chunks."""
FORMATS = ("conll", "squad", *LABEL_LINES)


@dataclass(frozen=True)
class TaskLook:
    """What a labeled file is for.

    Attributes:
        keys: of `task`, in their order, without the files.
        comments: why, by key.
        summary: what the file holds, in words.
    """

    keys: dict[str, Any]
    comments: dict[str, str] = field(default_factory=dict)
    summary: str = ""


def task_of_format(seen: Seen) -> TaskLook:
    """The task of a file of one of `FORMATS`."""
    make = {"conll": _conll, "squad": _squad, "fasttext": _fasttext, "trec": _trec}[seen.kind]
    look = make(seen)
    if seen.encoding.name != "utf-8":
        look.keys["encoding"], look.comments["encoding"] = seen.encoding
    bad_bytes_keys(seen, look.keys, look.comments)
    return look


def _conll(seen: Seen) -> TaskLook:
    """Of several columns of tags the one that tags the most words: that of outer entities, if some lie in
    others. Chunks are no entities."""
    keys: dict[str, Any] = {"type": "token-classification"}
    comments = {"type": "a word and its tag a line, in CoNLL's form"}
    rows = _conll_rows(seen)
    last = len(rows[0]) - 1
    tags = {column: [fields[column] for fields in rows] for column in tag_columns(rows)}
    if is_conllu(rows) and not tags:
        keys |= {"label": _UPOS, "tag_scheme": "plain"}
        comments["label"] = f"the parts of speech; or {_UPOS + 1}: those of the language"
        return TaskLook(keys, comments, "CoNLL-U")
    if not tags:
        keys["tag_scheme"] = "plain"
        comments["tag_scheme"] = "the tags are names, each of one word, such as parts of speech"
        return TaskLook(keys, comments, "CoNLL")
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
    return TaskLook(keys, comments, summary)


def _conll_rows(seen: Seen) -> list[list[str]]:
    """The fields of the first lines that hold words, all of the usual number."""
    rows = [fields for line in seen.lines[:-1] if (fields := conll_fields(line))]
    rows = [fields for fields in rows if not fields[0].startswith(("#", DOCUMENT))]
    width = Counter(map(len, rows)).most_common(1)[0][0]
    return [fields for fields in rows if len(fields) == width]


def _squad(seen: Seen) -> TaskLook:
    keys = {"type": "question-answering"} | ({} if suffix_of(seen.path) == ".json" else {"format": "squad"})
    return TaskLook(keys, {"type": "questions with answers in their texts, in SQuAD's JSON"}, "SQuAD JSON")


def _fasttext(seen: Seen) -> TaskLook:
    rows = _rows(seen)
    several = sum(len(row.values["label"]) != 1 for row in rows)
    keys: dict[str, Any] = {"type": "classification", "format": "fasttext"}
    comments = {"type": "labels as in fastText: __label__NAME before each text"}
    if several:
        keys["multi_label"] = True
        comments["multi_label"] = (
            f"{several:,} of {len(rows):,} lines have several labels or none; false: one a line"
        )
    return TaskLook(keys, comments, "lines of fastText")


def _trec(seen: Seen) -> TaskLook:
    rows = _rows(seen)
    coarse, fine = ({row.values[name] for row in rows} for name in ("label", "fine"))
    keys = {"type": "classification", "format": "trec", "label": "label"}
    comments = {
        "type": "labels as in TREC: COARSE:fine before each text",
        "label": f"the first part: {len(coarse)} labels; or fine: both parts, {len(fine)} labels",
    }
    return TaskLook(keys, comments, "lines of TREC")


def _rows(seen: Seen) -> list[Row]:
    settings = TaskSettings(
        type="classification",
        format=seen.kind,  # pyright: ignore[reportArgumentType]
        multi_label=True,
        encoding=seen.encoding.name,
    )
    table = open_label_lines(seen.path, seen.kind, settings, labeled=True, note=lambda line: None)
    return [row for row in islice(table.rows, MOST_ROWS) if isinstance(row, Row)]
