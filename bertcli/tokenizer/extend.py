"""A tokenizer and a corpus -> the same tokenizer with the new pieces that shorten the corpus most.

New pieces become part of the model that cuts words: entries of a WordPiece, merges at the end of a BPE,
pieces with scores of a Unigram. Added tokens would cut inside words: the token `art` would make `part` into
`p`, `art`.
"""

import heapq
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers

from bertcli.system.terminal import Report
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.train import patiently

Cut = dict[str, list[str]]
"""A unit (a part of a text that no piece crosses) -> its pieces."""

_ROUNDS = 20
"""Rounds of choosing. Words are cut again after each, because a new piece changes what the next one saves."""
_LONGEST = 8
"""The most pieces that one new piece may replace."""
_MOST_WORDS = 2_000_000
"""Distinct words that are counted; beyond that number, words that were seen once are forgotten."""
_MOST_SPANS = 4_000_000
"""Distinct spans that are counted, in about 1 GB; beyond that number, spans seen once are forgotten."""
_RARE = -1e4
"""The score of a special token among a Unigram's pieces: so low that no text should yield the token."""


@dataclass(frozen=True)
class Extended:
    """A tokenizer with new pieces.

    Attributes:
        tokenizer: the extended tokenizer; old ids are unchanged, and the ids of new pieces follow them.
        replaced: for each new id, in order, the old ids of the pieces that it replaces.
        before, after: the mean number of pieces per word of the corpus, with the old and the new pieces.
    """

    tokenizer: Tokenizer
    replaced: list[list[int]]
    before: float
    after: float


def extend(tokenizer: Tokenizer, texts: Iterable[str], number: int, report: Report) -> Extended:
    """Add `number` pieces; fewer if the texts have fewer spans that occur at least twice.

    Each round ranks the spans of pieces inside words by the tokens that one piece in place of the span would
    save, and makes pieces of the best spans. Where one new piece contains another, the round takes only the
    one that saves more. `report` takes lines for the user.
    """
    words = _count_words(texts)
    return patiently(lambda: _extended(tokenizer, words, number, report=report), "choosing pieces", report)


def _extended(tokenizer: Tokenizer, words: Counter[str], number: int, report: Report) -> Extended:
    backend, units = tokenizer.backend, _count_units(tokenizer.backend, words)
    pipeline = json.loads(backend.to_str())
    _settle(pipeline)
    first_id = tokenizer.vocab_size
    parts: dict[str, tuple[str, ...]] = {}
    known, longest = _vocabulary(pipeline), 2 if tokenizer.kind == "BPE" else _LONGEST  # a merge joins two
    pieces, spans = _cut(pipeline, units), Counter[tuple[str, ...]]()

    def num_pieces() -> int:
        return sum(len(pieces[unit]) * count for unit, count in units.items())

    def count_spans(cut: Cut, sign: int = 1) -> None:
        """Count the spans of pieces in units; `sign` -1 subtracts them."""
        for unit, own in cut.items():
            for span in _spans(own, longest):
                if known.issuperset(span):  # a Unigram gives an unknown character as a piece
                    spans[span] += sign * units[unit]
            if len(spans) > _MOST_SPANS:
                for span in [span for span, count in spans.items() if count < 2]:
                    del spans[span]

    before = num_pieces() / max(1, words.total())
    count_spans(pieces)
    for turn in range(_ROUNDS, 0, -1):
        wanted = math.ceil((number - len(parts)) / turn)
        chosen = _choose(spans, tokenizer.spelling.prefix, known, at_most=wanted)
        if not chosen:
            break
        total = num_pieces()
        for new_id, (piece, (span, count)) in enumerate(chosen.items(), first_id + len(parts)):
            _add(pipeline, piece, new_id, span=span, share=count / total)
        parts |= {piece: span for piece, (span, _) in chosen.items()}
        known |= chosen.keys()
        texts = [piece.removeprefix(tokenizer.spelling.prefix) for piece in chosen]
        old = {unit: cut for unit, cut in pieces.items() if any(text in unit for text in texts)}
        count_spans(old, -1)
        new = _cut(pipeline, old)
        count_spans(new)
        pieces |= new
    if len(parts) < number:
        report(f"note: the text gives no more than {len(parts):,} new pieces")
    grown = tokenizers.Tokenizer.from_str(json.dumps(pipeline))
    extended = Tokenizer(grown, "the extended vocabulary", tokenizer.names)
    old_ids = backend.get_vocab(with_added_tokens=True)
    replaced = [[old_ids[each] for each in _old_pieces(piece, parts)] for piece in parts]
    return Extended(extended, replaced, before, after=num_pieces() / max(1, words.total()))


def _count_words(texts: Iterable[str]) -> Counter[str]:
    words: Counter[str] = Counter()
    for text in texts:
        words.update(text.split())
        if len(words) > _MOST_WORDS:
            words = Counter({word: count for word, count in words.items() if count > 1})
    return words


def _count_units(backend: tokenizers.Tokenizer, words: Counter[str]) -> Counter[str]:
    units: Counter[str] = Counter()
    for word, count in words.items():
        for unit in units_of(backend, word):
            units[unit] += count
    return units


def units_of(backend: tokenizers.Tokenizer, word: str) -> list[str]:
    """The parts of a word after a blank that no piece crosses, in the form that the model reads."""
    normalizer, before = backend.normalizer, backend.pre_tokenizer
    text = f" {word}" if isinstance(backend.model, tokenizers.models.BPE) else word
    text = text if normalizer is None else normalizer.normalize_str(text)
    return [text] if before is None else [unit for unit, _ in before.pre_tokenize_str(text)]


def _join(pieces: Sequence[str], prefix: str) -> str:
    """The piece that replaces consecutive `pieces`; `prefix` begins the pieces that continue a word."""
    first, *others = pieces
    return first + "".join(piece.removeprefix(prefix) for piece in others)


def _cut(pipeline: dict[str, Any], units: Iterable[str]) -> Cut:
    model = tokenizers.Tokenizer.from_str(json.dumps(pipeline)).model
    return {unit: [token.value for token in model.tokenize(unit)] for unit in units}


def _choose(
    spans: Counter[tuple[str, ...]], prefix: str, known: set[str], at_most: int
) -> dict[str, tuple[tuple[str, ...], int]]:
    """New pieces -> the span that each replaces, and the number of times that the span occurs."""
    chosen: dict[str, tuple[tuple[str, ...], int]] = {}
    best = [(count * (1 - len(span)), span) for span, count in spans.items() if count > 1]
    heapq.heapify(best)
    while best and len(chosen) < at_most:
        _, span = heapq.heappop(best)
        piece = _join(span, prefix)
        if piece not in known and not any(piece in other or other in piece for other in chosen):
            chosen[piece] = span, spans[span]
    return chosen


def _spans(pieces: Sequence[str], longest: int) -> Iterator[tuple[str, ...]]:
    for start in range(len(pieces) - 1):
        for end in range(start + 2, min(len(pieces), start + longest) + 1):
            yield tuple(pieces[start:end])


def _vocabulary(pipeline: dict[str, Any]) -> set[str]:
    vocabulary = pipeline["model"]["vocab"]
    return {piece for piece, _ in vocabulary} if isinstance(vocabulary, list) else set(vocabulary)


def _settle(pipeline: dict[str, Any]) -> None:
    """Add registered tokens with ids after the vocabulary to it; else new pieces would shift their ids."""
    vocabulary = pipeline["model"]["vocab"]
    known = _vocabulary(pipeline)
    for token in sorted(pipeline["added_tokens"], key=lambda token: token["id"]):
        if token["content"] in known:
            continue
        if isinstance(vocabulary, list):
            vocabulary += [[f"<unused-{place}>", _RARE] for place in range(len(vocabulary), token["id"])]
            vocabulary.append([token["content"], _RARE])
        else:
            vocabulary[token["content"]] = token["id"]


def _add(pipeline: dict[str, Any], piece: str, new_id: int, span: Sequence[str], share: float) -> None:
    """Add a piece to the pipeline's model. `share` is the share of all tokens that the piece would be."""
    model, vocabulary = pipeline["model"], pipeline["model"]["vocab"]
    if model["type"] == "Unigram":
        assert len(vocabulary) == new_id
        scores = dict(map(tuple, vocabulary))
        apart = sum(scores[each] for each in span)
        vocabulary.append([piece, max(math.log(share), apart + 0.1)])
        return
    vocabulary[piece] = new_id
    if model["type"] == "BPE":
        model["merges"].append(list(span))


def _old_pieces(piece: str, parts: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """The old pieces that a new piece replaces; new pieces among its parts are resolved into old ones."""
    for each in parts[piece]:
        if each in parts:
            yield from _old_pieces(each, parts)
        else:
            yield each
