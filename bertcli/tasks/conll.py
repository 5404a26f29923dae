"""CoNLL files: which columns hold words and tags, and the words of each sentence with their tags."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bertcli.config.section import Decoding
from bertcli.corpus.encodings import is_damaged
from bertcli.corpus.streams import all_lines
from bertcli.system.errors import UserError
from bertcli.system.remote import InputPath
from bertcli.tasks.examples import TaggedExample
from bertcli.tasks.table import BadRow, LabeledFile, each
from bertcli.tasks.tags import check_tag, is_tag, read_tags
from bertcli.tasks.words import join_words

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

    def is_word(self, fields: list[str], is_first: bool) -> bool:
        """True if a line holds a word, and not a comment, or a multiword token or an empty node of CoNLL-U.

        Comments stand before a sentence; `is_first` says whether the line does.
        """
        if self.counting and _NO_WORD.fullmatch(fields[0]):
            return False
        if not is_first or not fields[0].startswith("#"):
            return True
        if self.counting or len(fields) != self.width:
            return False
        return self.tag is None or self.is_plain or is_tag(fields[self.tag])

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


def conll_lines(path: InputPath, decoding: Decoding) -> Iterator[Line]:
    """The (number, fields) of each line; a blank line has no fields. Damaged lines are kept."""
    return enumerate(map(conll_fields, all_lines(path, decoding)), start=1)


def conll_fields(line: str) -> list[str]:
    """The fields of a line; a blank one has none."""
    line = line.strip(" \t\r")  # nothing else: a no-break space can be a word
    parts = line.split("\t" if "\t" in line else " ")
    return [part for part in (part.strip(" ") for part in parts) if part]


def find_layout(file: LabeledFile) -> Layout:
    """The layout with the config's columns. The default is the first column for the word (after one with
    numbers), and the last for the tag.

    Raises `UserError` for a file without sentences, a missing column, or a last column without tags if
    another column has some.
    """
    path, settings, labeled = file.path, file.settings, file.labeled
    sentences = _sample(path, settings.decoding)
    rows = [fields for sentence in sentences for fields in sentence]
    if not rows:
        problem = "holds no sentences; expected one word a line, and a blank line between sentences"
        raise UserError(f"{path}: {problem}")
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


def _sample(path: InputPath, decoding: Decoding) -> list[list[list[str]]]:
    """The first sentences, without comments."""
    sentences: list[list[list[str]]] = []
    left = SAMPLE
    for sentence in _sentences(conll_lines(path, decoding), lambda fields, _: not fields[0].startswith("#")):
        sentences.append([fields for _, fields in sentence[:left]])
        left -= len(sentence)
        if left <= 0:
            break
    return sentences


def tag_columns(rows: Sequence[list[str]]) -> list[int]:
    """The columns, without the first, that hold tags."""
    return [column for column in range(1, len(rows[0])) if _holds_tags(rows, column)]


def is_conllu(rows: Sequence[list[str]]) -> bool:
    """True if these are lines of CoNLL-U: ten columns, the first of which numbers the words."""
    return all(len(fields) == 10 and _NUMBER.fullmatch(fields[0]) for fields in rows)


def holds_plain_tags(rows: Sequence[list[str]]) -> bool:
    """True if the last column holds names such as parts of speech: capitals and signs, fewer than words."""
    last = {fields[-1] for fields in rows}
    num_words = len({fields[0] for fields in rows})
    are_few = 2 <= len(last) <= min(60, num_words - 1)
    return are_few and any(tag.isalpha() for tag in last) and all(map(_PLAIN.fullmatch, last))


def _holds_tags(rows: Sequence[list[str]], column: int) -> bool:
    """True if every value of the column is a tag, and at least one is not O."""
    values = {fields[column] for fields in rows if column < len(fields)}
    return all(map(is_tag, values)) and any("-" in value for value in values)


def _counts(sentences: Sequence[list[list[str]]]) -> bool:
    """True if the first column counts 1, 2, 3, ... (or from 0) in each sentence."""
    longest = 0
    for sentence in sentences:
        numbers = [fields[0] for fields in sentence if not _NO_WORD.fullmatch(fields[0])]
        counts = [list(map(str, range(first, first + len(numbers)))) for first in (0, 1)]
        if not numbers or numbers not in counts:
            return False
        longest = max(longest, len(numbers))
    return longest > 1


def _numbers_sentences(sentences: Sequence[list[list[str]]]) -> bool:
    """True if the first column has the same number in all lines of a sentence, and another one in each."""
    numbers = [{fields[0] for fields in sentence} for sentence in sentences]
    same = [next(iter(each)) for each in numbers if len(each) == 1]
    is_one_each = len(same) == len(sentences) == len(set(same)) and all(map(str.isdecimal, same))
    return is_one_each and len(sentences) > 1 and max(map(len, sentences)) > 1


def read_conll(file: LabeledFile) -> Iterator[TaggedExample | BadRow]:
    """An example for each sentence. A blank line, or one that begins with -DOCSTART-, ends a sentence.

    Columns are separated by tabs, or in a line without tabs by blanks. `settings.text` and `settings.label`
    may number them. By default the word is in the first column, or in the second if the first numbers the
    words, and the tag is in the last. `note` is called with the columns, and `report` with others that could
    hold the tags. A line before a sentence that begins with # is a comment if its columns do not fit those
    of the other lines. Lines of CoNLL-U for multiword tokens (`1-2`) and empty nodes (`8.1`) are skipped.

    Raises `UserError` as `find_layout` does.
    """
    layout = find_layout(file)
    if file.labeled or layout.counting:
        file.note(f"{file.path}: {layout.line()}")
    if doubt := layout.doubt():
        file.report(f"{file.path}: {doubt}")
    sentences = _sentences(conll_lines(file.path, file.settings.decoding), layout.is_word)
    whole = (
        lines for lines in sentences if not any(is_damaged(field) for _, fields in lines for field in fields)
    )
    return each(whole, lambda sentence: _sentence(file, layout, sentence))


def _sentences(lines: Iterable[Line], is_word: Callable[[list[str], bool], bool]) -> Iterator[list[Line]]:
    """The lines of each sentence that are words, by their fields and by whether they are the first."""
    sentence: list[Line] = []
    for number, fields in lines:
        if not fields or fields[0] == DOCUMENT:
            if sentence:
                yield sentence
            sentence = []
        elif is_word(fields, not sentence):
            sentence.append((number, fields))
    if sentence:
        yield sentence


def _sentence(file: LabeledFile, layout: Layout, sentence: list[Line]) -> TaggedExample:
    for number, fields in sentence:
        if len(fields) != layout.width:
            count = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
            raise BadRow(
                f"{file.path}, line {number}: {count} ({' '.join(fields)[:40]}), where other lines "
                f"have {layout.width}"
            )
    where, tags = f"{file.path}, line {sentence[0][0]}", None
    if layout.tag is not None:
        for number, fields in () if layout.is_plain else sentence:
            check_tag(fields[layout.tag], f"{file.path}, line {number}")
        tags = read_tags([fields[layout.tag] for _, fields in sentence], file.settings, where)
    words = tuple(fields[layout.word] for _, fields in sentence)
    text, spans = join_words(words)
    return TaggedExample(where, {"text": text}, (text,), words=words, spans=spans, tags=tags)
