"""An old and a new tokenizer -> the old pieces from which the vector of each new piece is made.

A piece has its text and its place in a word in any notation: `##ing`; `ing` beside `Ġto`; `ing` beside `▁to`.
The first rule that fits decides:

1. The old vocabulary has the same text at the same place, or a special token with the same role: its vector
   is copied.
2. The old tokenizer cuts the text into pieces: the mean of their vectors, weighted by their numbers of
   characters. Unknown characters, and bytes that are no full character, have no share in it.
3. The vector is drawn from the normal distribution of the old pieces of the same script at the same place; if
   they are few, of all at the same place, or of all. Downey et al. 2023 (arXiv 2309.04679) find that such
   draws rival FOCUS (Dobler and de Melo 2023), which needs an auxiliary model of the new text. Their mean
   alone would do for no more than one piece: a model cannot tell pieces with equal vectors apart.
"""

import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from bertcli.tokenizer.extend import units_of
from bertcli.tokenizer.tokenizer import Tokenizer

ENOUGH = 20
"""Least number of old pieces from whose distribution vectors are drawn; fewer say little about a script."""
_BYTES = "\N{REPLACEMENT CHARACTER}"
"""The sign for bytes that are no full character."""


class Piece(NamedTuple):
    """The text of a piece, and whether it continues a word."""

    text: str
    continues: bool


Kind = tuple[str | None, bool | None]
"""The script and the place of pieces; None: any."""


@dataclass(frozen=True)
class Origins:
    """The origins of the vectors of a new vocabulary.

    Attributes:
        mixed: for each new id, old ids and their weights, which add up to 1; empty if the vector is drawn.
        drawn: new ids, and the old ids from whose distribution their vectors are drawn.
        counts: a way to a vector -> the number of new pieces.
    """

    mixed: list[dict[int, float]]
    drawn: list[tuple[list[int], list[int]]]
    counts: dict[str, int]


def find_origins(old: Tokenizer, new: Tokenizer) -> Origins:
    """The origins of the vectors of `new` in the vocabulary of `old`."""
    source, pieces, copied = _Source(old), pieces_of(new), _special_ids(old, new)
    mixed: list[dict[int, float]] = [{} for _ in range(new.vocab_size)]
    drawn: dict[Kind, list[int]] = defaultdict(list)
    counts: dict[str, int] = dict.fromkeys(("copied", "made_from_old_pieces", "drawn_by_script", "drawn"), 0)
    for new_id, parts in enumerate(mixed):
        piece = pieces.get(new_id, Piece("", False))
        old_id = copied.get(new_id, source.ids.get(piece))
        if old_id is not None:
            parts[old_id], way = 1.0, "copied"
        elif found := source.parts(piece):
            way = "made_from_old_pieces"
            parts |= found
        else:
            kind = source.nearest_kind(piece)
            drawn[kind].append(new_id)
            way = "drawn" if kind[0] is None else "drawn_by_script"
        counts[way] += 1
    return Origins(mixed, [(new_ids, source.kinds[kind]) for kind, new_ids in drawn.items()], counts)


def pieces_of(tokenizer: Tokenizer) -> dict[int, Piece]:
    """Id -> piece, without special and other registered tokens.

    The text of bytes that are no full character is `�` and the piece itself, which tells them apart.
    """
    backend = tokenizer.backend
    others = {*tokenizer.names.values(), *map(str, backend.get_added_tokens_decoder().values())}
    pieces: dict[int, Piece] = {}
    for token, number in backend.get_vocab(with_added_tokens=False).items():
        if token not in others:
            text = tokenizer.spelling.text(token)
            text = f"{_BYTES}{token}" if _BYTES in text else text
            pieces[number] = Piece(text, bool(tokenizer.continuation[number]))
    return dict(sorted(pieces.items()))


def _special_ids(old: Tokenizer, new: Tokenizer) -> dict[int, int]:
    """New id -> old id of special tokens with the same role, and of registered tokens with the same text."""
    before, after = (each.backend.get_vocab(with_added_tokens=True) for each in (old, new))
    registered = map(str, new.backend.get_added_tokens_decoder().values())
    names = {name: name for name in registered} | {name: old.names[role] for role, name in new.names.items()}
    return {after[own]: before[theirs] for own, theirs in names.items() if own in after and theirs in before}


def _script(text: str) -> str:
    """The script of the first character: the first word of its Unicode name, such as LATIN or DIGIT."""
    return unicodedata.name(text[0], "").split(" ")[0] if text else ""


class _Source:
    """The old pieces by text and place, and by script and place.

    Attributes:
        ids: piece -> id. Punctuation and other signs without letters are found at either place, because some
            tokenizers cut words at them and others do not.
        kinds: kind -> ids of its pieces.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._pieces, self._spelling = pieces_of(tokenizer), tokenizer.spelling
        self._backend = tokenizer.backend  # made anew at each call, if there are special tokens of its own
        self.ids: dict[Piece, int] = {}
        self.kinds: dict[Kind, list[int]] = defaultdict(list)
        for number, piece in self._pieces.items():
            self.ids.setdefault(piece, number)
            for kind in _kinds(piece):
                self.kinds[kind].append(number)
        for (text, continues), number in list(self.ids.items()):
            if not text[:1].isalnum():
                self.ids.setdefault(Piece(text, not continues), number)

    def parts(self, piece: Piece) -> dict[int, float]:
        """The ids of the old pieces that make up `piece`, with weights; empty if there are none."""
        if piece.text.startswith(_BYTES):
            return {}
        spelling, units = self._spelling, units_of(self._backend, piece.text)
        if piece.continues and units:  # each kind of model takes a marked text for one inside a word
            units[0] = spelling.prefix + units[0].removeprefix(spelling.blank)
        model = self._backend.model
        sizes: dict[int, int] = defaultdict(int)
        for token in (token for unit in units if unit for token in model.tokenize(unit)):
            text = self._pieces[token.id].text if token.id in self._pieces else ""
            if text and not text.startswith(_BYTES):
                sizes[token.id] += len(text)
        total = sum(sizes.values())
        return {number: size / total for number, size in sizes.items()}

    def nearest_kind(self, piece: Piece) -> Kind:
        """The first kind of `piece` of which there are enough old pieces; else that of all pieces."""
        kinds = list(_kinds(piece))
        return next((kind for kind in kinds if len(self.kinds[kind]) >= ENOUGH), kinds[-1])


def _kinds(piece: Piece) -> tuple[Kind, ...]:
    """The kinds of a piece, from the narrowest: script and place, place, any."""
    return (_script(piece.text), piece.continues), (None, piece.continues), (None, None)
