"""Files whose format is the task: CoNLL, SQuAD, fastText and TREC -> the keys of a config's `task`."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from bertcli.config.finetune import LABEL_LINES, TaskSettings
from bertcli.examples.label_lines import open_label_lines
from bertcli.examples.table import Row
from bertcli.start.files import Seen, suffix_of
from bertcli.start.tables import MOST_ROWS, bad_bytes_keys

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
    comments = {"type": "a word and its tag a line, in CoNLL's form"}
    return TaskLook({"type": "token-classification"}, comments, "CoNLL")


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
    return TaskLook(keys, comments, f"{len(rows):,} lines of fastText")


def _trec(seen: Seen) -> TaskLook:
    rows = _rows(seen)
    coarse, fine = ({row.values[name] for row in rows} for name in ("label", "fine"))
    keys = {"type": "classification", "format": "trec", "label": "label"}
    comments = {
        "type": "labels as in TREC: COARSE:fine before each text",
        "label": f"the first part: {len(coarse)} labels; or fine: both parts, {len(fine)} labels",
    }
    return TaskLook(keys, comments, f"{len(rows):,} lines of TREC")


def _rows(seen: Seen) -> list[Row]:
    settings = TaskSettings(
        type="classification",
        format=seen.kind,  # pyright: ignore[reportArgumentType]
        multi_label=True,
        encoding=seen.encoding.name,
    )
    table = open_label_lines(seen.path, seen.kind, settings, labeled=True, note=lambda line: None)
    return [row for row in islice(table.rows, MOST_ROWS) if isinstance(row, Row)]
