"""Entities by characters -> tags of words: the one place where a span of a text becomes tags."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal

from bertcli.config.task import TaskSettings
from bertcli.system.terminal import Report, short
from bertcli.tasks.examples import Example, MarkedText, Mention, TaggedExample
from bertcli.tasks.table import BadRow, quiet
from bertcli.tasks.tags import chunks
from bertcli.tasks.words import Span, word_spans
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.word_places import is_invisible, placed_words

_AT_ONCE = 512
"""Examples that are divided into words together."""
_SHOWN = 30
"""Most characters of a span or a word in a message."""


Misfit = Literal["span_ends", "overlaps"]
_MISFITS: dict[Misfit, str] = {
    "span_ends": "begin or end inside a word",
    "overlaps": "overlap another one",
}
"""Key -> the spans that it decides about."""


def at_words(
    rows: Iterable[Any], settings: TaskSettings, tokenizer: Tokenizer | None, report: Report = quiet
) -> Iterator[Any]:
    """A `TaggedExample` for each `MarkedText`; with `words: tokenizer`, for each `TaggedExample` again.

    Spans that do not fit the words are treated as `span_ends` and `overlaps` say. After the last row `report`
    is called with their numbers. Without a tokenizer, what needs its words stays as it is.
    """
    if settings.words == "tokenizer" and tokenizer is None:
        yield from rows
        return
    tally = Tally(settings)
    yield from _all_placed(rows, tokenizer, tally)
    for key, line in tally.lines().items():
        report(f"{line} (task.{key}: {tally.treatment(key)}); first {tally.first[key]}")


def misfits(rows: Iterable[Example], settings: TaskSettings, tokenizer: Tokenizer) -> dict[Misfit, str]:
    """The number of spans of these rows that do not fit the words, by the key of `task` that decides about
    them."""
    tally = Tally(settings)
    for _ in _all_placed(rows, tokenizer, tally):
        pass
    return tally.lines()


def _all_placed(rows: Iterable[Any], tokenizer: Tokenizer | None, tally: Tally) -> Iterator[Any]:
    if tally.settings.words != "tokenizer" or tokenizer is None:
        for row in rows:
            yield _placed(row, word_spans(*row.texts), tally) if isinstance(row, MarkedText) else row
        return
    waiting = iter(rows)
    while some := list(islice(waiting, _AT_ONCE)):
        texts = [row.texts[0] for row in some if not isinstance(row, BadRow)]
        found = iter(placed_words(tokenizer, texts))
        for row in some:
            if isinstance(row, BadRow):
                yield row
            else:
                words = [(word.start, word.end) for word in next(found)]
                yield _placed(_unplaced(row), words, tally)


def _unplaced(row: MarkedText | TaggedExample) -> MarkedText:
    if isinstance(row, MarkedText):
        return row
    return MarkedText(row.where, row.columns, row.given, mentions=mentions_of(row))


def _placed(row: MarkedText, words: Sequence[Span], tally: Tally) -> TaggedExample | BadRow:
    (text,), tags = row.texts, None
    if row.mentions is not None:
        try:
            tags = tags_at(words, Placing(row.where, text, tally).fit(row.mentions, words))
        except BadRow as bad:
            return bad
    named = tuple(text[start:end] for start, end in words)
    return TaggedExample(row.where, row.columns, row.given, words=named, spans=tuple(words), tags=tags)


def mentions_of(example: TaggedExample) -> tuple[Mention, ...] | None:
    """The entities of words with tags, by characters."""
    if example.tags is None:
        return None
    spans = example.spans
    found = chunks(example.tags)
    return tuple(Mention(spans[each.start][0], spans[each.end - 1][1], each.type) for each in found)


def tags_at(words: Sequence[Span], mentions: Iterable[Mention]) -> tuple[str, ...]:
    """The tag of each word in BIO. Mentions must begin and end with words, and must not overlap."""
    tags = ["O"] * len(words)
    for mention in mentions:
        kind = f"-{mention.type}" if mention.type else ""
        first, stop = _covered(words, mention)
        tags[first:stop] = [f"B{kind}", *[f"I{kind}"] * (stop - first - 1)]
    return tuple(tags)


def _covered(words: Sequence[Span], mention: Mention) -> tuple[int, int]:
    """The first word that a mention touches, and the one after the last."""
    first = bisect_right(words, mention.start, key=lambda word: word[1])
    return first, bisect_left(words, mention.end, key=lambda word: word[0])


@dataclass
class Tally:
    """The number of spans in a file, and by key the number of those that do not fit, and the first one."""

    settings: TaskSettings
    spans: int = 0
    found: Counter[Misfit] = field(default_factory=Counter[Misfit])
    first: dict[Misfit, str] = field(default_factory=dict[Misfit, str])

    def add(self, key: Misfit, example: str) -> bool:
        """Count a span that does not fit. True if the settings refuse it."""
        self.found[key] += 1
        self.first.setdefault(key, example)
        return self.treatment(key) == "refuse"

    def treatment(self, key: Misfit) -> str:
        """The value of a key."""
        return self.settings.span_ends if key == "span_ends" else self.settings.overlaps

    def lines(self) -> dict[Misfit, str]:
        """The number of each kind of span that does not fit, by the key that decides about it."""
        return {
            key: f"{self.found[key]:,} of {self.spans:,} spans {what}"
            for key, what in _MISFITS.items()
            if self.found[key]
        }


@dataclass(frozen=True)
class Placing:
    """The spans of one text, as they are fitted to its words."""

    where: str
    text: str
    tally: Tally

    def fit(self, mentions: Sequence[Mention], words: Sequence[Span]) -> list[Mention]:
        """The spans with the ends of words, in order, without overlaps.

        Raises `BadRow` for one that does not fit, if the settings refuse it; all of them are counted.
        """
        problems, fitted = list[str](), list[tuple[Mention, Mention]]()
        for mention in dict.fromkeys(mentions):
            self.tally.spans += 1
            first, stop = _covered(words, mention)
            if first >= stop:
                problems.append(f"the span {self.shown(mention)} holds no word that the model reads")
                continue
            wide = Mention(words[first][0], words[stop - 1][1], mention.type)
            added = self.text[wide.start : mention.start] + self.text[mention.end : wide.end]
            if not all(map(is_invisible, added)):
                problems += self.inside(mention, wide)
            fitted.append((mention, wide))
        kept = list[Mention]()
        for mention, wide in sorted(fitted, key=lambda each: each[0].start - each[0].end):
            other = next((each for each in kept if wide.start < each.end and each.start < wide.end), None)
            if other is None:
                kept.append(wide)
            else:
                problems += self.overlap(mention, other)
        if problems:
            raise BadRow(f"{self.where}: {problems[0]}")
        return sorted(kept)

    def inside(self, mention: Mention, wide: Mention) -> list[str]:
        """The problem with a span that begins or ends inside a word, if the settings refuse it."""
        said = f"{self.shown(mention)} begins or ends inside a word of {self.quoted(wide)}"
        if not self.tally.add("span_ends", f"{self.where}: {said}"):
            return []
        return [f"the span {said}; set task.span_ends: widen to take whole words"]

    def overlap(self, mention: Mention, other: Mention) -> list[str]:
        """The problem with a span that overlaps a longer one, if the settings refuse it."""
        said = f"{self.shown(mention)} overlaps {self.shown(other)}"
        if not self.tally.add("overlaps", f"{self.where}: {said}"):
            return []
        return [f"the span {said}; a word has one tag: set task.overlaps: longest to keep the longest span"]

    def shown(self, mention: Mention) -> str:
        """A span in a message."""
        return f"{mention.start}-{mention.end} {self.quoted(mention)} ({mention.type})"

    def quoted(self, mention: Mention) -> str:
        """The text of a span in a message."""
        return repr(short(self.text[mention.start : mention.end], _SHOWN))
