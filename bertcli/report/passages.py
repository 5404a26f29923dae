"""Texts with marked spans: entities that were missed or invented, answers beside the right ones."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bertcli.examples.examples import QuestionExample, TaggedExample
from bertcli.metrics.entities import Chunk, chunks
from bertcli.report.formatting import ELLIPSIS, around, short
from bertcli.tasks.question_answering import Answered
from bertcli.tasks.token_classification import Tagged

LONGEST = 400
"""Characters of a text."""
_LONGEST_TYPE = 24
Kind = Literal["", "right", "given", "both", "other"]
"""right: missed; given: wrong; both: found; other: found with another type or other ends."""


@dataclass(frozen=True)
class Piece:
    """A part of a text; `kind` says how it is marked, `note` stands behind it."""

    text: str
    kind: Kind = ""
    note: str = ""


@dataclass(frozen=True)
class Passage:
    """A text in pieces, and its name beside the others of its row."""

    name: str
    pieces: Sequence[Piece]


def entity_passages(example: TaggedExample, answer: Tagged) -> tuple[list[Passage], float]:
    """The text with all entities, right and given, and the highest score of a wrong one (0: only missed)."""
    right, given = set(chunks(example.tags or ())), set(chunks(answer.tags))
    at = {(chunk.start, chunk.end, chunk.type): entity for chunk, entity in _scored(answer)}
    sureness = max((at[each.start, each.end, each.type] for each in given - right), default=0.0)
    first_wrong = min(chunk.start for chunk in right ^ given) if right ^ given else 0
    place = example.spans[first_wrong][0] if example.spans else 0
    start, end = around(example.text, place, place, most=LONGEST)
    pieces = []
    for first, last, kind, note in _runs(len(example.words), right, given):
        piece_end = example.spans[last + 1][0] if last + 1 < len(example.words) else len(example.text)
        piece_start = example.spans[first][0] if first else 0
        marked_end = example.spans[last][1] if kind else piece_end
        if piece_end > start and piece_start < end:
            inside = example.text[max(start, piece_start) : min(end, marked_end)]
            pieces += [Piece(inside, kind, note)] if inside else []
            gap = example.text[max(start, marked_end) : min(end, piece_end)]
            pieces += [Piece(gap)] if gap else []
    return [Passage("", _with_ellipses(pieces, start > 0, end < len(example.text)))], sureness


def answer_passages(example: QuestionExample, answer: Answered) -> list[Passage]:
    """The question, and the context around the given answer, with it and the right one marked."""
    spans = [(each.start, each.start + len(each.text)) for each in (example.answers or ())[:1]]
    given = None if answer.start is None or answer.end is None else (answer.start, answer.end)
    marked: dict[tuple[int, int], Kind] = {}
    for span in spans:
        marked[span] = "right"
    if given is not None:
        marked[given] = "both" if given in marked else "given"
    middle = given or (spans[0] if spans else (0, 0))
    start, end = around(example.context, *middle, most=LONGEST)
    excerpts = [(start, end)]
    if spans and not (start <= spans[0][0] and spans[0][1] <= end):
        excerpts.append(around(example.context, *spans[0], most=LONGEST // 2))
    return [
        Passage("question", [Piece(short(example.question, LONGEST // 2))]),
        *(Passage("context", _marked(example.context, each, marked)) for each in excerpts),
    ]


def _scored(answer: Tagged) -> list[tuple[Chunk, float]]:
    return [(chunk, entity.score) for chunk, entity in zip(chunks(answer.tags), answer.entities, strict=True)]


def _runs(words: int, right: set[Chunk], given: set[Chunk]) -> list[tuple[int, int, Kind, str]]:
    """First and last word of each stretch that is in the same entities, how it is marked, and its note."""
    inside: list[tuple[Chunk | None, Chunk | None]] = [(None, None)] * words
    for chunk in right:
        inside[chunk.start : chunk.end] = [(chunk, None)] * (chunk.end - chunk.start)
    for chunk in given:
        for word in range(chunk.start, chunk.end):
            inside[word] = (inside[word][0], chunk)
    runs: list[tuple[int, int, Kind, str]] = []
    first = 0
    for word in range(words):
        if word + 1 == words or inside[word + 1] != inside[word]:
            runs.append((first, word, *_mark(*inside[word])))
            first = word + 1
    return runs


def _mark(right: Chunk | None, given: Chunk | None) -> tuple[Kind, str]:
    if right is None and given is None:
        return "", ""
    if right is None or given is None:
        only = right or given
        assert only is not None
        return ("right" if given is None else "given"), short(only.type or "entity", _LONGEST_TYPE)
    if right == given:
        return "both", short(right.type or "entity", _LONGEST_TYPE)
    types = dict.fromkeys(short(each.type or "entity", _LONGEST_TYPE) for each in (right, given))
    return "other", " → ".join(types)


def _marked(text: str, window: tuple[int, int], marked: dict[tuple[int, int], Kind]) -> list[Piece]:
    """The text in `window`; marked spans may overlap: what is in two of them is `both`."""
    start, end = window
    edges = sorted({start, end, *(edge for span in marked for edge in span if start < edge < end)})
    pieces = []
    for first, last in itertools.pairwise(edges):
        kinds: set[Kind] = {kind for (a, b), kind in marked.items() if a <= first < last <= b}
        kind: Kind = "both" if len(kinds) > 1 else kinds.pop() if kinds else ""
        pieces.append(Piece(text[first:last], kind))
    return _with_ellipses(pieces, start > 0, end < len(text))


def _with_ellipses(pieces: list[Piece], before: bool, after: bool) -> list[Piece]:
    return [*([Piece(ELLIPSIS)] if before else []), *pieces, *([Piece(ELLIPSIS)] if after else [])]
