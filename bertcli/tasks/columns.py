"""What a labeled file shows: its columns, which of them hold texts, and which one holds the label."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from bertcli.config.yaml_text import scalar
from bertcli.system.errors import UserError
from bertcli.system.remote import InputPath
from bertcli.tasks.label_cells import bits, flags_of, is_flag, is_tick, written_list
from bertcli.tasks.table import number_in

_TEXT_NAMES = (
    *("text", "sentence", "content", "message", "review", "body", "tweet", "comment", "post", "document"),
    *("article", "abstract", "utterance", "passage", "story", "paragraph", "context"),
)
_LABEL_NAMES = (
    *("label", "labels", "class", "category", "categories", "target", "gold_label", "sentiment", "polarity"),
    *("score", "similarity", "rating", "stars", "intent", "topic", "topics", "quality", "is_duplicate"),
    *("gold", "answer", "tag", "tags", "ner_tags", "y", "spam", "emotion", "stance", "toxicity", "classes"),
    *("emotions", "targets", "intents", "genres", "aspects", "label_ids", "correct", "answer_key"),
    "answerkey",
)
_OTHER_NAMES = re.compile(
    r"(.*[ _#-])?(id|idx|index|no|nr|url|link|source\d?|date|time|timestamp|author|user|lang|language|file|"
    r"filename|path|year|genre|split|meta|metadata|version|created|updated|uuid|hash|#\d+ id)([ _-].*)?",
    re.IGNORECASE,
)
_PAIRS = (
    *(("premise", "hypothesis"), ("question", "sentence"), ("question", "passage"), ("query", "passage")),
    *(("question", "context"), ("query", "document"), ("claim", "evidence")),
)
_NUMBERED = re.compile(r"(.*?)[ _#-]*([0-9]|[a-jA-J])([ _-].*)?")
_TEXT_CHARACTERS = 12
"""Least mean length in characters at which a column of any name can be a text."""
_FEW_LABELS = 50
"""Largest number of different values in a label column that nothing else marks as one."""


@dataclass(frozen=True)
class Column:
    """A column, with its values that are not missing; empty texts count as missing."""

    name: str
    values: Sequence[Any]
    rows: int

    @cached_property
    def distinct(self) -> int:
        """Number of different values."""
        return len({repr(value) for value in self.values})

    @cached_property
    def is_number(self) -> bool:
        """True if all values are numbers; numbers written as text count too."""
        return bool(self.values) and all(number_in(value) is not None for value in self.values)

    @cached_property
    def numbers(self) -> list[float]:
        """The values of a column of numbers."""
        return [number for value in self.values if (number := number_in(value)) is not None]

    @property
    def is_string(self) -> bool:
        """True if all values are texts."""
        return bool(self.values) and all(isinstance(value, str) for value in self.values)

    @cached_property
    def lists(self) -> list[list[Any]] | None:
        """The values if all are lists, texts of lists as programs write them (`['a', 'b']`, `0 1 0`), or
        objects with a 0 or 1 for each label, of which those with 1 are taken."""
        found = []
        for value in self.values:
            if (items := _items(value)) is None:
                return None
            found.append(items)
        return found or None

    @cached_property
    def is_flags(self) -> bool:
        """True if all values are 0 or 1 (or true, false, yes, no)."""
        return bool(self.values) and all(map(is_flag, self.values))

    @cached_property
    def is_ticks(self) -> bool:
        """True if some rows have a mark, always the same one, and the others nothing."""
        return 0 < len(self.values) < self.rows and self.distinct == 1 and is_tick(self.values[0])

    @cached_property
    def characters(self) -> float:
        """Mean length of a value."""
        return sum(len(str(value)) for value in self.values) / max(1, len(self.values))

    @property
    def is_text(self) -> bool:
        """True if the column can be a text to read."""
        is_filled = self.is_string and not self.is_number and 2 * len(self.values) > self.rows
        if not is_filled or self.lists is not None or _OTHER_NAMES.fullmatch(self.name):
            return False
        is_varied = self.distinct > _FEW_LABELS or 2 * self.distinct > len(self.values)
        is_long = self.characters >= _TEXT_CHARACTERS and is_varied
        return is_long or (self.name.lower() in _TEXT_NAMES and self.distinct > 2)

    @property
    def can_be_label(self) -> bool:
        """True if the values can be labels: few different ones, or numbers; in most rows, unless it is named
        as a label."""
        is_filled = self.is_named_label or 2 * len(self.values) >= self.rows
        if self.distinct < 2 or not is_filled or self.lists is not None:
            return False
        if self.is_number:
            counts_rows = self.distinct == self.rows and self.numbers == sorted(self.numbers)
            return self.is_named_label or not counts_rows
        return self.distinct <= _FEW_LABELS and self.distinct < len(self.values)

    @property
    def is_named_label(self) -> bool:
        """True if the name says that the column is a label."""
        return self.name.lower() in _LABEL_NAMES

    @property
    def is_other(self) -> bool:
        """True if the name says that the column is neither text nor label: a number, an address, a date."""
        return bool(_OTHER_NAMES.fullmatch(self.name))


@dataclass(frozen=True)
class Sample:
    """The beginning of a labeled file.

    Attributes:
        suffix: the suffix, without that of a compression.
        format: the format, as `task.format` names it.
        lines: the first lines, without line ends; empty for a Parquet file.
        columns: the columns of a table; empty for a file in another format.
        is_named: True if the columns have their own names.
        keys: keys of `task` by which the file is read; each may have a comment.
        how: words on how a table is read.
    """

    path: InputPath
    suffix: str
    format: str
    lines: Sequence[str] = ()
    columns: Sequence[Column] = ()
    is_named: bool = True
    keys: dict[str, Any] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    how: str = ""

    def refusal(self, problem: str) -> UserError:
        """An error for labels that cannot be read."""
        has_texts = any(column.is_string for column in self.columns)
        or_corpus = ". To pretrain on the texts alone: --for pretrain" if has_texts else ""
        return UserError(f"{self.path}: {problem}{or_corpus}")


@dataclass(frozen=True)
class Recognized:
    """The task of a labeled file.

    Attributes:
        keys: keys of `task`, without the files.
        comments: key -> reason.
        summary: words on what the file holds.
    """

    keys: dict[str, Any]
    comments: dict[str, str] = field(default_factory=dict)
    summary: str = ""

    def add(self, key: str, value: Any, why: str) -> None:
        """Take a key, with its reason."""
        self.keys[key], self.comments[key] = value, why


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """The columns of all rows, in the order of the first."""
    found = []
    for name in dict.fromkeys(name for row in rows for name in row):
        values = (row.get(name) for row in rows)
        kept = [value for value in values if value is not None and str(value).strip()]
        found.append(Column(name, kept, len(rows)))
    return found


def text_column(columns: Sequence[Column]) -> Column | None:
    """The column that is most likely the text: by its name, else the one with the longest values."""
    texts = [column for column in columns if column.is_text]
    named = [column for column in texts if column.name.lower() in _TEXT_NAMES]
    return max(named or texts, key=lambda column: column.characters, default=None)


def text_pair(columns: Sequence[Column], is_named: bool) -> list[Column] | None:
    """Two columns of text that make a pair, if their names say so or no column has a name; else None."""
    texts = {column.name.lower(): column for column in columns if column.is_text}
    named = [[texts[name] for name in pair] for pair in _PAIRS if texts.keys() >= {*pair}]
    numbered = numbered_groups([column for column in columns if column.is_text])
    groups = [*named, *numbered]
    if not is_named:
        groups.append(list(texts.values()))
    return next((group for group in groups if len(group) == 2), None)


def label_columns(columns: Sequence[Column], texts: Sequence[Column]) -> list[Column]:
    """The columns that can be the label, likeliest first: by name, then by the fewest different values."""
    can = [column for column in columns if column not in texts and column.can_be_label]
    own = [column for column in can if column.is_named_label or not column.is_other]
    return sorted(own or can, key=lambda column: (not column.is_named_label, column.distinct))


def numbered_groups(columns: Sequence[Column]) -> list[list[Column]]:
    """Groups of columns whose names differ only in a number or letter: `#1 String` and `#2 String`."""
    groups: dict[tuple[str, str], list[Column]] = {}
    for column in columns:
        if found := _NUMBERED.fullmatch(column.name):
            groups.setdefault((found[1].lower(), (found[3] or "").lower()), []).append(column)
    return [group for group in groups.values() if len(group) > 1]


def names_of(columns: Sequence[Column]) -> str:
    """The names of the columns, as a config has them."""
    return ", ".join(scalar(column.name) for column in columns)


def _items(value: Any) -> list[Any] | None:
    if (flags := flags_of(value)) is not None:
        return [name for name, fits in flags.items() if fits]
    if not isinstance(value, str):
        return value if isinstance(value, list) else None
    found = written_list(value)
    return bits(value) if found is None else found
