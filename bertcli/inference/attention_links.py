"""What each token of a row attends to in every layer and head: probabilities, of tokens and of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from bertcli.errors import UserError
from bertcli.inference.rows import only_numbers
from bertcli.inference.words import ReadRow
from bertcli.model.encoder import Body
from bertcli.text.tokenizer import Tokenizer

MOST_TOKENS = 512
"""Of a row: the probabilities of all layers and heads grow with its square."""
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Unit:
    """A word, or a special token: its text, and the positions of its tokens in the row."""

    text: str
    tokens: range
    is_special: bool


@dataclass(frozen=True, slots=True)
class Link:
    """The word `query` attends to the word `key` with this weight, a probability."""

    query: str
    key: str
    weight: float


@dataclass(frozen=True)
class Attention:
    """The attention of a row of T tokens; in a name of a tensor, L is the axis of layers, U of units.

    Attributes:
        read: the row and its words.
        tokens: the piece of each token, for people.
        layers: the numbers of the layers, from 0.
        probabilities_LNTT: float32 on the CPU; each token (row) attends to all tokens (columns), with sum 1.
    """

    read: ReadRow
    tokens: tuple[str, ...]
    layers: tuple[int, ...]
    probabilities_LNTT: Tensor

    @property
    def units(self) -> list[Unit]:
        """Words and special tokens, in the order of the row."""
        words = [Unit(word.text, word.tokens, False) for word in self.read.words]
        own = {place for word in words for place in word.tokens}
        special = [
            Unit(token, range(place, place + 1), True)
            for place, token in enumerate(self.tokens)
            if place not in own
        ]
        return sorted([*words, *special], key=lambda unit: unit.tokens.start)

    @property
    def heads(self) -> int:
        """Of each layer."""
        return self.probabilities_LNTT.shape[1]

    def of_layers(self, layers: Sequence[int]) -> Attention:
        """These layers alone. Raises `UserError` for one that is not there."""
        for layer in layers:
            _check("--layers", layer, self.layers)
        chosen = [self.layers.index(layer) for layer in layers]
        return replace(self, layers=tuple(layers), probabilities_LNTT=self.probabilities_LNTT[chosen])

    def between_units(self) -> Tensor:
        """[L, N, U, U]: how much a unit attends to another one; each row sums to 1.

        The sum over the tokens that are attended to, and its mean over the tokens that attend (Clark et al.
        2019, section 4.1).
        """
        member_UT = torch.zeros(len(self.units), len(self.tokens))
        for number, unit in enumerate(self.units):
            member_UT[number, list(unit.tokens)] = 1
        return member_UT / member_UT.sum(dim=1, keepdim=True) @ self.probabilities_LNTT @ member_UT.T

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {
            "tokens": self.tokens,
            "words": [
                {"text": word.text, "tokens": list(word.tokens), "segment": word.segment}
                for word in self.read.words
            ],
            "layers": self.layers,
            "attention": [
                [[[round(p, _DIGITS) for p in row] for row in head] for head in layer]
                for layer in self.probabilities_LNTT.tolist()
            ],
        }


@torch.inference_mode()
def attention_of(body: Body, tokenizer: Tokenizer, read: ReadRow) -> Attention:
    """The attention of all layers, before dropout, on the plain path of the model (`Body.trace`)."""
    device, row = next(body.parameters()).device, read.row
    segments_T = (torch.arange(row.length) >= row.second_starts).long().to(device)
    _, probabilities = body.eval().trace(torch.tensor([list(row.ids)], device=device), segments_T[None])
    stacked_LNTT = torch.cat([each_1NTT.float().cpu() for each_1NTT in probabilities])
    tokens = tuple(tokenizer.readable(id_) for id_ in row.ids)
    return Attention(
        read, tokens, tuple(range(len(stacked_LNTT))), probabilities_LNTT=only_numbers(stacked_LNTT)
    )


def choose_head(attention: Attention, layer: int | None = None, head: int | None = None) -> tuple[int, int]:
    """A layer and a head that are worth a look: `layer` and `head`, where they are given, and of the others
    those whose words most strongly attend to a word of their own, which is not beside them.

    That is the mean over the words of the largest such weight, less the mean weight that all words give to
    the same word. Heads that attend to the word before or after, or to one word from everywhere, are the
    strongest of most models, and all alike. Raises `UserError` for a layer or a head that is not there.
    """
    layers = attention.layers if layer is None else (_check("--layer", layer, attention.layers),)
    all_heads = range(attention.heads)
    heads = all_heads if head is None else (_check("--head", head, all_heads),)
    words = [number for number, unit in enumerate(attention.units) if not unit.is_special]
    between_LNWW = attention.between_units()[:, :, words][:, :, :, words]
    own_LNWW = between_LNWW - between_LNWW.mean(dim=2, keepdim=True)
    numbers_W = torch.arange(len(words))
    is_near_WW = (numbers_W[:, None] - numbers_W).abs() <= 1
    far_LNWW = own_LNWW.masked_fill(is_near_WW, 0.0)
    focus_LN = far_LNWW.amax(dim=-1).mean(dim=-1) if words else torch.zeros(far_LNWW.shape[:2])
    return max(
        ((one, other) for one in layers for other in heads),
        key=lambda chosen: float(focus_LN[attention.layers.index(chosen[0]), chosen[1]]),
    )


def strongest_links(attention: Attention, layer: int, head: int, number: int) -> tuple[list[Link], float]:
    """The strongest links between words in a head, the strongest first; and the share of the words' attention
    that goes to special tokens."""
    units = attention.units
    between_UU = attention.between_units()[attention.layers.index(layer), head]
    words = [place for place, unit in enumerate(units) if not unit.is_special]
    links = [
        Link(units[query].text, units[key].text, float(between_UU[query, key]))
        for query in words
        for key in words
    ]
    links.sort(key=lambda link: -link.weight)
    share = 1 - float(between_UU[words][:, words].sum()) / max(1, len(words))
    return links[:number], share


def _check(option: str, number: int, known: Sequence[int]) -> int:
    if number in known:
        return number
    what = "layers" if option.startswith("--layer") else "heads"
    numbers = f"0 to {known[-1]}" if list(known) == list(range(len(known))) else ", ".join(map(str, known))
    raise UserError(f"{option}: there is no {number}; the {what} are {numbers}")
