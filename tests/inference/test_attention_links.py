"""How much words attend to each other, computed by hand; which head is shown, and which links."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bertcli.folders.model_folder import load_encoder_folder
from bertcli.inference.attention import Attention, attention_of, choose_head, strongest_links
from bertcli.system.errors import UserError
from bertcli.tasks.row_words import ReadRow, Word, read_texts
from bertcli.tokenizer.frame import Row
from tests.folders.folders import saved_model, tiny_tokenizer

CATS, SAT, IN = Word("cats", range(1, 3), 0), Word("sat", range(3, 4), 0), Word("in", range(4, 5), 0)
ROW = ReadRow(Row([2, 7, 21, 9, 38, 3], 6), (CATS, SAT, IN), 0)
TOKENS = ("[CLS]", "cat", "##s", "sat", "in", "[SEP]")


def attention(*heads: dict[tuple[int, int], float], layers: int = 1) -> Attention:
    """Layers of the same heads; in each, a few weights are given, and [CLS] gets the rest."""
    weights_NTT = torch.zeros(len(heads), 6, 6)
    for head, given in enumerate(heads):
        for (query, key), weight in given.items():
            weights_NTT[head, query, key] = weight
    weights_NTT[:, :, 0] += 1 - weights_NTT.sum(dim=-1)
    return Attention(ROW, TOKENS, tuple(range(layers)), weights_NTT.expand(layers, -1, -1, -1))


def test_units_are_words_and_special_tokens_in_order():
    units = attention({}).units
    assert [unit.text for unit in units] == ["[CLS]", "cats", "sat", "in", "[SEP]"]
    assert [unit.is_special for unit in units] == [True, False, False, False, True]


def test_of_several_tokens_a_word_attends_by_the_mean_and_is_attended_to_by_the_sum():
    found = attention({(1, 3): 0.5, (2, 3): 0.1, (3, 1): 0.25, (3, 2): 0.5}).between_units()
    assert found.shape == (1, 1, 5, 5)
    assert found[0, 0, 1, 2] == pytest.approx(0.3)
    assert found[0, 0, 2, 1] == pytest.approx(0.75)
    torch.testing.assert_close(found.sum(dim=-1), torch.ones(1, 1, 5))


def test_the_head_whose_words_attend_to_far_words_of_their_own_is_chosen():
    neighbors = {(1, 3): 1.0, (2, 3): 1.0, (3, 4): 1.0, (4, 3): 1.0}
    far, weaker = {(1, 4): 0.6, (2, 4): 0.6}, {(1, 4): 0.4, (2, 4): 0.4}
    one_for_all = dict.fromkeys(((1, 4), (2, 4), (3, 4), (4, 4)), 1.0)
    heads = attention(neighbors, one_for_all, weaker, far, layers=2)
    assert choose_head(heads) == (0, 3)
    assert choose_head(heads, layer=1) == (1, 3)
    assert choose_head(heads, head=2) == (0, 2)
    assert choose_head(heads, layer=1, head=0) == (1, 0)
    assert choose_head(Attention(ReadRow(ROW.row, (), 0), TOKENS, (0,), torch.zeros(1, 2, 6, 6))) == (0, 0)


def test_a_layer_or_head_that_is_not_there_is_an_error():
    with pytest.raises(UserError, match="--layer: there is no 2; the layers are 0 to 1"):
        choose_head(attention({}, layers=2), layer=2)
    with pytest.raises(UserError, match="--head: there is no -1; the heads are 0 to 0"):
        choose_head(attention({}), head=-1)
    with pytest.raises(UserError, match="--layers: there is no 9; the layers are 0 to 1"):
        attention({}, layers=2).of_layers([0, 9])
    with pytest.raises(UserError, match="--layer: there is no 1; the layers are 0, 2"):
        choose_head(attention({}, layers=3).of_layers([0, 2]), layer=1)


def test_links_are_between_words_and_the_strongest_come_first():
    links, share = strongest_links(attention({(1, 3): 0.5, (2, 3): 0.1, (4, 1): 0.2}), 0, 0, number=2)
    assert [(link.query, link.key) for link in links] == [("cats", "sat"), ("in", "cats")]
    assert [link.weight for link in links] == pytest.approx([0.3, 0.2])
    assert share == pytest.approx(1 - 0.5 / 3)


def test_chosen_layers_keep_their_numbers_and_values():
    found = Attention(ROW, TOKENS, (0, 1, 2), torch.rand(3, 2, 6, 6)).of_layers([0, 2])
    assert (found.layers, found.heads) == ((0, 2), 2)
    assert found.as_json()["layers"] == (0, 2)
    torch.testing.assert_close(
        torch.tensor(found.as_json()["attention"]), found.probabilities_LNTT, atol=1e-6, rtol=0
    )


def test_of_a_pair_the_second_text_is_segment_1(tmp_path: Path):
    saved_model(tmp_path)
    model, tokenizer = load_encoder_folder(tmp_path)
    read = read_texts(tiny_tokenizer(), ["the cats", "a dog"], 19)
    found = attention_of(model.body, tokenizer, read)
    segments_T = torch.tensor([0] * 5 + [1] * 3)
    with torch.no_grad():
        _, want = model.body.trace(torch.tensor([read.row.ids]), segments_T[None])
    torch.testing.assert_close(found.probabilities_LNTT, torch.cat(want))
    assert found.tokens == ("[CLS]", "the", "cat", "##s", "[SEP]", "a", "dog", "[SEP]")
    assert found.layers == (0, 1)
    assert [word["segment"] for word in found.as_json()["words"]] == [0, 0, 1, 1]
