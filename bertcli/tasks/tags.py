"""Tags in any of the usual schemes -> BIO; which columns of a CoNLL file hold words and tags."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bertcli.config.section import Decoding
from bertcli.config.task import TaskSettings
from bertcli.corpus.streams import all_lines
from bertcli.system.errors import UserError
from bertcli.tasks.table import BadRow

_TO_BIO = {"B": "B", "I": "I", "E": "I", "S": "B", "L": "I", "U": "B"}
"""BIOES (IOBES) marks the last word of an entity with E and a single word with S; BILOU uses L and U."""


def is_tag(tag: str) -> bool:
    """True if this is `O`, or a letter of a scheme, alone or with a hyphen and a type."""
    prefix, hyphen, kind = tag.partition("-")
    return tag == "O" or (prefix in _TO_BIO and bool(hyphen) == bool(kind))


def check_tag(tag: str, where: str) -> None:
    """Raise `BadRow` for a tag of no scheme."""
    if not is_tag(tag):
        raise BadRow(
            f"{where}: {tag!r} is not a tag; expected O, or B or I (BIOES: also E and S; BILOU: L and U) "
            "with a hyphen and the type, such as B-person. If tags are names, such as NOUN, set "
            "task.tag_scheme: plain; if they are numbers, task.label_names: [O, B-person, ...], the name of "
            "each number from 0"
        )


def read_tags(tags: Sequence[str], settings: TaskSettings, where: str) -> tuple[str, ...]:
    """One sentence's tags in BIO. Raises `BadRow` for a tag of no scheme, `UserError` for one that
    `label_names` lacks."""
    names = settings.label_names
    if names is not None:
        wrong = next(
            (t for t in tags if t not in names and not (t.isdecimal() and int(t) < len(names))), None
        )
        if wrong is not None:
            raise UserError(
                f"{where}: the tag {wrong!r} is no name of task.label_names, and no number of one, 0 to "
                f"{len(names) - 1}"
            )
        tags = [tag if tag in names else names[int(tag)] for tag in tags]
    if settings.tag_scheme == "plain":
        return tuple(f"B-{tag}" for tag in tags)
    for tag in tags:
        check_tag(tag, where)
    return to_bio(tags)


def to_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """One sentence's tags, each of which `is_tag`, in BIO (IOB2; Tjong Kim Sang and Veenstra 1999).

    The scheme need not be known: each letter means the same in all schemes, except for I, which in IOB1 also
    begins an entity. Here I begins one in any scheme if the tag before it is not of the same type.
    """
    bio: list[str] = []
    before = "O"
    for tag in tags:
        if tag != "O":
            kind = tag[1:]
            continues = before != "O" and before[1:] == kind
            tag = (_TO_BIO[tag[0]] if continues else "B") + kind
        bio.append(tag)
        before = tag
    return tuple(bio)


DOCUMENT = "-DOCSTART-"
SAMPLE = 2000
"""Number of lines from which the columns are identified."""
Line = tuple[int, list[str]]
"""A line's number, from 1, and its fields; a blank line has none."""

_NO_WORD = re.compile(r"\d+[-.]\d+")
"""The number of a multiword token (`1-2`) or an empty node (`8.1`) in CoNLL-U."""
_NUMBER = re.compile(r"\d+([-.]\d+)?")
_PLAIN = re.compile(r"[A-Z][A-Z0-9$_+-]*|[^\w\s]{1,5}")
"""A part of speech: NOUN, VBZ, PRP$, -LRB-, a comma."""


@dataclass(frozen=True)
class Layout:
    """Columns by number, from 0.

    Attributes:
        width: how many columns a line has.
        tag: the column of the tags; None if the file is unlabeled.
        counting: whether the first column numbers the sentences, or the words of each, as in CoNLL-U.
        others: further columns that hold tags; none if the config names the column.
        is_plain: whether any name is a tag, such as a number or a part of speech.
    """

    width: int
    word: int
    tag: int | None
    counting: bool
    others: tuple[int, ...] = ()
    is_plain: bool = False

    def is_comment(self, fields: list[str]) -> bool:
        """True if a line before a sentence is a comment."""
        if not fields[0].startswith("#"):
            return False
        if self.counting or len(fields) != self.width:
            return True
        return self.tag is not None and not self.is_plain and not is_tag(fields[self.tag])

    def is_word(self, fields: list[str]) -> bool:
        """True if a line holds a word, and not a multiword token or an empty node of CoNLL-U."""
        return not (self.counting and _NO_WORD.fullmatch(fields[0]))

    def line(self) -> str:
        """A message for the user: which columns are read."""
        counting = "; column 0 has numbers alone" if self.counting else ""
        tags = "" if self.tag is None else f", tags in column {self.tag}"
        return f"words in column {self.word}{tags} of {self.width}, counted from 0{counting}"

    def doubt(self) -> str | None:
        """A message about other columns with tags, and the key to set; None: there are none."""
        if not self.others:
            return None
        columns = ", ".join(map(str, self.others))
        problem = f"{'column' if len(self.others) == 1 else 'columns'} {columns} could hold the tags too"
        return f"{problem}; {self.tag}, the last, is read: set task.label: {self.others[-1]} to learn those"


def conll_lines(path: Path, decoding: Decoding) -> Iterator[Line]:
    """The (number, fields) of each line; a blank line has no fields. Damaged lines are kept."""
    for number, line in enumerate(all_lines(path, decoding), start=1):
        yield number, conll_fields(line)


def conll_fields(line: str) -> list[str]:
    """The fields of a line; a blank one has none."""
    line = line.strip(" \t\r")  # nothing else: a no-break space can be a word
    parts = line.split("\t" if "\t" in line else " ")
    return [part for part in (part.strip(" ") for part in parts) if part]


def find_layout(path: Path, settings: TaskSettings, labeled: bool) -> Layout:
    """The layout with the config's columns. The default is the first column for the word (after one with
    numbers), and the last for the tag.

    Raises `UserError` for a file without sentences, a missing column, or a last column without tags if
    another column has some.
    """
    sentences = _sample(path, settings.decoding)
    rows = [fields for sentence in sentences for fields in sentence]
    if not rows:
        raise UserError(
            f"{path}: holds no sentences; expected one word a line, and a blank line between sentences"
        )
    width = len(rows[0])
    if labeled and width == 1:
        raise UserError(f"{path}: has one column ({rows[0][0]}); expected a word and its tag")
    tagged = tag_columns(rows)
    is_numbered = _counts(sentences) or _numbers_sentences(sentences)
    counting = is_numbered and width > 1 and not (width == 2 and (labeled or tagged))
    (word,) = settings.text_columns or (int(counting),)
    tag = width - 1 if settings.label is None else settings.label
    for key, column in (("text", word), ("label", tag if labeled else 0)):
        if not isinstance(column, int) or column >= width:
            raise UserError(
                f"{path}: task.{key}: no column {column!r}; the columns of a CoNLL file have numbers, here 0 "
                f"to {width - 1}"
            )
    assert isinstance(word, int)
    if not labeled or not isinstance(tag, int):
        return Layout(width, word, None, counting=counting)
    others = tuple(column for column in tagged if column not in (word, tag) and settings.label is None)
    if others and not any(len(fields) == width and is_tag(fields[tag]) for fields in rows):
        raise UserError(
            f"{path}: the last column ({tag}, counted from 0) holds no tags, but {rows[0][tag]!r}; set "
            f"task.label: {others[-1]}, which holds tags"
        )
    is_plain = settings.tag_scheme == "plain" or settings.label_names is not None
    return Layout(width, word, tag, counting=counting, others=others, is_plain=is_plain)


def _sample(path: Path, decoding: Decoding) -> list[list[list[str]]]:
    """The first sentences, without comments."""
    sentences: list[list[list[str]]] = [[]]
    found = 0
    for _, fields in conll_lines(path, decoding):
        if not fields or fields[0] == DOCUMENT:
            sentences.append([])
        elif not fields[0].startswith("#"):
            sentences[-1].append(fields)
            found += 1
            if found == SAMPLE:
                break
    return [sentence for sentence in sentences if sentence]


def tag_columns(rows: Sequence[list[str]]) -> list[int]:
    """The columns, without the first, that hold tags."""
    return [column for column in range(1, len(rows[0])) if _holds_tags(rows, column)]


def is_conllu(rows: Sequence[list[str]]) -> bool:
    """True if these are lines of CoNLL-U: ten columns, the first of which numbers the words."""
    return all(len(fields) == 10 and _NUMBER.fullmatch(fields[0]) for fields in rows)


def holds_plain_tags(rows: Sequence[list[str]]) -> bool:
    """True if the last column holds names such as parts of speech: capitals and signs, fewer than words."""
    last = {fields[-1] for fields in rows}
    words = {fields[0] for fields in rows}
    has_letters = any(tag.isalpha() for tag in last)
    return (
        has_letters and all(map(_PLAIN.fullmatch, last)) and 2 <= len(last) <= 60 and len(last) < len(words)
    )


def _holds_tags(rows: Sequence[list[str]], column: int) -> bool:
    """True if every value of the column is a tag, and at least one is not O."""
    values = {fields[column] for fields in rows if column < len(fields)}
    return all(map(is_tag, values)) and any("-" in value for value in values)


def _counts(sentences: Sequence[list[list[str]]]) -> bool:
    """True if the first column counts 1, 2, 3, ... (or from 0) in each sentence."""
    longest = 0
    for sentence in sentences:
        numbers = [fields[0] for fields in sentence if not _NO_WORD.fullmatch(fields[0])]
        if not numbers or numbers[0] not in ("0", "1"):
            return False
        start = int(numbers[0])
        if numbers != list(map(str, range(start, start + len(numbers)))):
            return False
        longest = max(longest, len(numbers))
    return longest > 1


def _numbers_sentences(sentences: Sequence[list[list[str]]]) -> bool:
    """True if the first column has the same number in all lines of a sentence, and another one in each."""
    numbers = [{fields[0] for fields in sentence} for sentence in sentences]
    same = [next(iter(each)) for each in numbers if len(each) == 1]
    is_one_each = len(same) == len(sentences) == len(set(same)) and all(map(str.isdecimal, same))
    return is_one_each and len(sentences) > 1 and max(map(len, sentences)) > 1
