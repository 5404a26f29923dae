"""The page that shows the attention of a row: the probabilities in 8 bits, and a script that draws them."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bertcli.inference.attention import Attention, choose_head, reason_of
from bertcli.inference.attributions import Attributions
from bertcli.reports.cards import public_name
from bertcli.reports.page import fragment, page
from bertcli.system.errors import UserError
from bertcli.system.terminal import short
from bertcli.tasks.row_words import Word

MOST_VALUES = 675_000
"""Largest number of probabilities in a page, one byte each. They take 900 kB in base64; a page has 1 MB."""
_TITLE = 80
"""Largest number of characters in the window's title."""
_LONGEST_WORD = 40
"""Largest number of characters of a word."""


def fit_layers(attention: Attention, first: int, are_given: bool) -> Attention:
    """The layers that fit into a page: all, or some at equal distances; the layer `first` is among them.

    `are_given`: the user named the layers. Raises `UserError` if they do not all fit, or if no layer fits.
    """
    tokens, number = len(attention.tokens), len(attention.layers)
    most = MOST_VALUES // (attention.heads * tokens**2)
    if most >= number:
        return attention
    if most == 0:
        longest = int((MOST_VALUES / attention.heads) ** 0.5)
        raise UserError(
            f"a page of 1 MB holds rows of at most {longest} tokens of this model, and this has {tokens}: "
            "shorten the text, or use --json"
        )
    if are_given:
        raise UserError(f"--layers: of {tokens} tokens, {most} layers fit into a page of 1 MB; name fewer")
    step = (number - 1) / max(1, most - 1)
    chosen = [attention.layers[round(place * step)] for place in range(most)]
    if first not in chosen:
        nearest = min(range(most), key=lambda place: abs(chosen[place] - first))
        chosen[nearest] = first
    return attention.of_layers(chosen)


def attention_page(
    model: str,
    texts: Sequence[str],
    attention: Attention,
    head: tuple[int, int],
    reason: str,
    attributions: Attributions | None = None,
) -> str:
    """The HTML document.

    Args:
        model: the folder of the model, or its id on the hub.
        head: the layer and the head that are shown first.
        reason: a clause that says why these are shown first.
    """
    values = {
        "texts": texts,
        "attributions": None,
        **_heads_values(public_name(model), attention, reason),
        **({} if attributions is None else _why_values(attributions, attention.read.words)),
    }
    title = short(f"Attention: {' | '.join(texts)}", _TITLE)
    return page(title, _TEMPLATE, values, scripts=SCRIPTS, data=_data(attention, head))


_TEMPLATE, SCRIPTS = "attention.html.j2", ("attention.js",)
"""The scripts draw the heads from their data; in a page that is open, `drawAttention` does it."""


def heads_section(model: str, attention: Attention) -> str:
    """The part of the page with the heads, and their data; the layers are those that fit."""
    head = choose_head(attention)
    fitted = fit_layers(attention, head[0], are_given=False)
    values = _heads_values(model, fitted, reason_of())
    return fragment(_TEMPLATE, values, "heads", data=_data(fitted, head))


def why_section(attributions: Attributions, words: Sequence[Word]) -> str:
    """The part of the page with the words that decided; `words` are those of the row."""
    return fragment(_TEMPLATE, _why_values(attributions, words), "why")


def _heads_values(model: str, attention: Attention, reason: str) -> dict[str, Any]:
    special = dict.fromkeys(unit.text for unit in attention.units if unit.is_special)
    return {
        "model": model,
        "layers": attention.layers,
        "heads": attention.heads,
        "tokens": len(attention.tokens),
        "reason": reason,
        "special": list(special),
        "has_pieces": any(len(unit.tokens) > 1 for unit in attention.units),
    }


def _why_values(attributions: Attributions, words: Sequence[Word]) -> dict[str, Any]:
    """The attributions, and the words of each text with their scores."""
    texts: list[list[ScoredWord]] = [[], []]
    for word, scored in zip(words, scored_words(attributions), strict=True):
        texts[word.segment].append(scored)
    return {"attributions": attributions, "scored": [text for text in texts if text]}


def _data(attention: Attention, head: tuple[int, int]) -> dict[str, Any]:
    segments = {word.tokens.start: word.segment for word in attention.read.words}
    # Square roots keep small weights apart: near 1 %, two neighboring bytes differ by 0.08 %.
    bytes_LNTT = (attention.probabilities_LNTT.clamp(0, 1).sqrt() * 255).round().byte()
    return {
        "tokens": attention.tokens,
        "units": [
            {
                "text": unit.text,
                "start": unit.tokens.start,
                "stop": unit.tokens.stop,
                "special": unit.is_special,
                "second": segments.get(unit.tokens.start, 0) == 1,
            }
            for unit in attention.units
        ],
        "layers": attention.layers,
        "heads": attention.heads,
        "first": [attention.layers.index(head[0]), head[1]],
        "values": base64.b64encode(bytes_LNTT.numpy().tobytes()).decode(),
    }


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
            short(word, _LONGEST_WORD),
            f"{score:+.{decimals}f}".replace("-", "−"),  # this sign is as wide as the plus
            level=round(9 * abs(score) / largest),
            is_for=score >= 0,
        )
        for word, score in zip(attributions.words, attributions.scores, strict=True)
    ]
