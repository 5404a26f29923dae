"""The page of attention: its size, its numbers, what it escapes, and what of it fits."""

from __future__ import annotations

import base64
import json
import re

import pytest
import torch

from bertcli.inference.attention import Attention
from bertcli.inference.attributions import Attributions
from bertcli.reports.attention import attention_page, fit_layers
from bertcli.system.errors import UserError
from bertcli.tasks.row_words import ReadRow, Word
from bertcli.tokenizer.frame import Row
from tests.reports.test_page import ATTACK, Elements

MEGABYTE = 1_000_000


def random_attention(tokens: int, layers: int = 12, heads: int = 12) -> Attention:
    """Of words of a token each, between two special ones."""
    torch.manual_seed(0)
    row = Row(list(range(tokens)), tokens)
    words = tuple(Word(f"word{place}", range(place, place + 1), 0) for place in range(1, tokens - 1))
    names = ("[CLS]", *(word.text for word in words), "[SEP]")
    probabilities_LNTT = (2 * torch.randn(layers, heads, tokens, tokens)).softmax(dim=-1)
    return Attention(ReadRow(row, words, 0), names, tuple(range(layers)), probabilities_LNTT)


def data_of(document: str) -> dict:
    return json.loads(Elements(document).texts["script"][0])


def page_of(
    attention: Attention, texts: tuple[str, ...] = ("a text",), scored: Attributions | None = None
) -> str:
    return attention_page(
        "m", texts, attention, head=(attention.layers[0], 0), reason="why", attributions=scored
    )


def test_64_tokens_of_a_base_model_fit_with_all_layers():
    attention = random_attention(64)
    assert fit_layers(attention, 0, are_given=False) is attention
    assert len(page_of(attention).encode()) < MEGABYTE


@pytest.mark.parametrize("tokens", [70, 100, 200, 237])
def test_of_a_longer_row_some_layers_fit(tokens: int):
    fitted = fit_layers(random_attention(tokens), 5, are_given=False)
    assert 5 in fitted.layers
    assert list(fitted.layers) == sorted(set(fitted.layers))
    assert len(page_of(fitted).encode()) < MEGABYTE
    assert (len(fitted.layers) + 1) * 12 * tokens**2 * 4 / 3 > 900_000  # one more would not fit


def test_what_does_not_fit_is_an_error_where_it_was_asked_for():
    with pytest.raises(
        UserError, match="--layers: of 100 tokens, 5 layers fit into a page of 1 MB; name fewer"
    ):
        fit_layers(random_attention(100), 0, are_given=True)
    with pytest.raises(UserError, match="holds rows of at most 237 tokens of this model, and this has 238"):
        fit_layers(random_attention(238, layers=1), 0, are_given=False)


def test_the_weights_in_the_page_are_the_probabilities():
    attention = random_attention(9, layers=2, heads=3)
    data = data_of(page_of(attention))
    bytes_ = torch.frombuffer(bytearray(base64.b64decode(data["values"])), dtype=torch.uint8)
    weights_LNTT = (bytes_.view(2, 3, 9, 9) / 255) ** 2
    assert (weights_LNTT - attention.probabilities_LNTT).abs().max() < 0.004
    assert (data["layers"], data["heads"], data["first"]) == ([0, 1], 3, [0, 0])
    assert [unit["special"] for unit in data["units"]] == [True, *[False] * 7, True]


def test_a_text_that_attacks_stays_a_text():
    attention = random_attention(4)
    words = tuple(Word(ATTACK, word.tokens, 0) for word in attention.read.words)
    attacked = Attention(
        ReadRow(attention.read.row, words, 0), (ATTACK,) * 4, attention.layers, attention.probabilities_LNTT
    )
    scored = Attributions([ATTACK] * 2, [1.0, 0.0], ATTACK, 1.0, 0.0, error=0.0, is_complete=True, steps=1)
    elements = Elements(
        attention_page(ATTACK, (ATTACK,), attacked, head=(0, 0), reason="", attributions=scored)
    )
    assert not elements.named("img")
    assert len(elements.named("script")) == 2
    assert not [key for _, attributes in elements.tags for key in attributes if key.startswith("on")]


def test_the_sign_of_a_score_is_in_its_number_and_its_class():
    scored = Attributions(
        ["so", "good"], [-0.25, 1.5], "yes", 2.0, 0.75, error=0.0, is_complete=True, steps=32
    )
    document = page_of(random_attention(4), scored=scored)
    spans = re.findall(r'class="scored (\w+)"><span class="(l\d)">(\w+)</span><small>(.*?)</small>', document)
    assert spans == [("against", "l2", "so", "−0.25"), ("for", "l9", "good", "+1.50")]
    assert "the scores sum to the difference." in document
    uneven = Attributions(
        ["word1", "word2"], [1.0, 0.0], "yes", 2.0, 0.0, error=-1.0, is_complete=False, steps=1024
    )
    assert "the scores miss the difference by 1.00" in page_of(random_attention(4), scored=uneven)


def test_a_page_asks_for_nothing():
    document = page_of(random_attention(8))
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)|url\(|@import", document)
