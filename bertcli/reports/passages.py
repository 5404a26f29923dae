"""Texts with marked spans for a report: entities, answers to questions, and words with scores."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bertcli.inference.attributions import Attributions
from bertcli.system.terminal import ELLIPSIS, around, short
from bertcli.tasks.examples import QuestionExample, TaggedExample
from bertcli.tasks.question_answering import Answered
from bertcli.tasks.token_classification import Chunk, Tagged, chunks

LONGEST = 400
"""Largest number of characters of a text."""
_LONGEST_TYPE = 24
Kind = Literal["", "right", "given", "both", "other"]
"""Kinds of marks. right: missed; given: wrong; both: found; other: found with another type or other ends."""
_Span = tuple[int, int]
_Mark = tuple[int, int, Kind, str]
"""A mark: start, end, kind and note."""


@dataclass(frozen=True)
class Piece:
    """A part of a text. `kind` says how it is marked; `note` is written after it."""

    text: str
    kind: Kind = ""
    note: str = ""


@dataclass(frozen=True)
class Passage:
    """A text in pieces, and its name, which tells it from the other texts of its row."""

    name: str
    pieces: Sequence[Piece]


def entity_passages(example: TaggedExample, answer: Tagged) -> tuple[list[Passage], float]:
    """The text with all right and given entities, and the highest score of a wrong one (0: none is wrong)."""
    right, given = set(chunks(example.tags or ())), set(chunks(answer.tags))
    scores = zip(chunks(answer.tags), answer.entities, strict=True)
    sureness = max((entity.score for chunk, entity in scores if chunk not in right), default=0.0)
    first_wrong = min((chunk.start for chunk in right ^ given), default=0)
    place = example.spans[first_wrong][0] if example.spans else 0
    in_right, in_given = (_chunks_of_words(each, len(example.words)) for each in (right, given))
    marks: list[_Mark] = []
    for of_both, words in itertools.groupby(range(len(example.words)), lambda i: (in_right[i], in_given[i])):
        first, *others = words
        start, end = example.spans[first][0], example.spans[others[-1] if others else first][1]
        marks.append((start, end, *_kind_and_note(*of_both)))
    window = around(example.text, place, place, most=LONGEST)
    return [Passage("", _pieces(example.text, window, marks))], sureness


def answer_passages(example: QuestionExample, answer: Answered) -> list[Passage]:
    """The question, and the context around the answer; the given and the right answer are marked in it."""
    right = next(((each.start, each.start + len(each.text)) for each in example.answers or ()), None)
    given = None if answer.start is None or answer.end is None else (answer.start, answer.end)
    marks = _of_answers(right, given)
    windows = [around(example.context, *(given or right or (0, 0)), most=LONGEST)]
    if right is not None and not (windows[0][0] <= right[0] and right[1] <= windows[0][1]):
        windows.append(around(example.context, *right, most=LONGEST // 2))
    return [
        Passage("question", [Piece(short(example.question, LONGEST // 2))]),
        *(Passage("context", _pieces(example.context, window, marks)) for window in windows),
    ]


def _chunks_of_words(found: set[Chunk], num_words: int) -> list[Chunk | None]:
    """The entity that each word is in; None: it is in none."""
    of_word: list[Chunk | None] = [None] * num_words
    for chunk in found:
        of_word[chunk.start : chunk.end] = [chunk] * (chunk.end - chunk.start)
    return of_word


def _kind_and_note(right: Chunk | None, given: Chunk | None) -> tuple[Kind, str]:
    types = [short(each.type or "entity", _LONGEST_TYPE) for each in (right, given) if each is not None]
    if right == given:
        return ("both", types[0]) if types else ("", "")
    if len(types) == 2:
        return "other", " → ".join(dict.fromkeys(types))
    return ("right" if given is None else "given"), types[0]


def _of_answers(right: _Span | None, given: _Span | None) -> list[_Mark]:
    """The marks of two spans, which may overlap; the common part has the kind `both`."""
    spans: dict[Kind, _Span | None] = {"right": right, "given": given}
    edges = sorted({edge for span in spans.values() if span for edge in span})
    marks: list[_Mark] = []
    for start, end in itertools.pairwise(edges):
        kinds: list[Kind] = [kind for kind, span in spans.items() if span and span[0] <= start < span[1]]
        marks.append((start, end, "both" if len(kinds) == 2 else kinds[0] if kinds else "", ""))
    return marks


def _pieces(text: str, window: _Span, marks: Sequence[_Mark]) -> list[Piece]:
    """The text in `window`, cut at the marks; marks must be in order and must not overlap."""
    at, end = window
    pieces = [Piece(ELLIPSIS if at > 0 else "")]
    for first, last, kind, note in marks:
        if first < end and last > at:
            pieces += [Piece(text[at:first]), Piece(text[max(at, first) : min(end, last)], kind, note)]
            at = min(end, last)
    pieces += [Piece(text[at:end]), Piece(ELLIPSIS if end < len(text) else "")]
    return [piece for piece in pieces if piece.text]


_LONGEST = 40
"""Largest number of characters of a word."""


@dataclass(frozen=True)
class ScoredWord:
    """A word, and what it adds to the output of a model.

    Attributes:
        score: the score with its sign; the largest score has three significant digits.
        level: the shade: the share of the largest score, in ninths.
    """

    text: str
    score: str
    level: int
    is_for: bool


def scored_words(attributions: Attributions) -> Sequence[ScoredWord]:
    """The words of `attributions`, in order."""
    largest = max(map(abs, attributions.scores), default=0.0) or 1.0
    decimals = min(6, max(0, 2 - math.floor(math.log10(largest))))
    return [
        ScoredWord(
            short(word, _LONGEST),
            f"{score:+.{decimals}f}".replace("-", "−"),  # this sign is as wide as the plus
            level=round(9 * abs(score) / largest),
            is_for=score >= 0,
        )
        for word, score in zip(attributions.words, attributions.scores, strict=True)
    ]
