import json
from dataclasses import replace

import pytest
import torch

from bertcli.folders.model_folder import load_model_folder
from bertcli.inference.fill_mask import MaskFiller, fill_masks
from bertcli.inference.lines import Line
from bertcli.system.errors import UserError
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.folders.folders import WORDS, random_model, saved_model
from tests.tokenizer.tokenizers_of import change_json, make_tokenizer_folder

CPU = torch.device("cpu")


@pytest.fixture
def loaded(tmp_path):
    saved_model(tmp_path)
    return load_model_folder(tmp_path, pairs=False)


@pytest.fixture
def always(loaded):
    """Let the model predict one word everywhere, whatever stands around it."""

    def favor(word):
        with torch.no_grad():
            loaded.model.mlm_head.bias.fill_(0)
            loaded.model.mlm_head.bias[WORDS.index(word)] = 1000
        return loaded

    return favor


def fill(loaded, *texts, top_k=3, batch_size=4):
    lines = [Line(text, f"text {number}") for number, text in enumerate(texts, start=1)]
    return list(fill_masks(loaded, lines, top_k, batch_size, CPU))


def test_probabilities_are_those_of_the_full_softmax_at_the_mask(loaded):
    (filled,) = fill(loaded, "The cat [MASK] on the mat.", top_k=32)
    ids = torch.tensor([[2, 5, 7, 4, 10, 5, 11, 21, 3]])
    with torch.inference_mode():
        want = loaded.model(ids, torch.zeros_like(ids)).mlm_logits_MV[3].softmax(-1)
    (predictions,) = filled.masks
    assert [prediction.probability for prediction in predictions] == sorted(
        (prediction.probability for prediction in predictions), reverse=True
    )
    for prediction in predictions:
        assert prediction.token == WORDS[prediction.id]
        assert prediction.probability == pytest.approx(want[prediction.id].item(), rel=1e-4, abs=1e-7)
    assert {prediction.id for prediction in predictions} == set(range(5, 37))


def test_each_mask_gets_its_predictions_in_the_texts_order(loaded):
    together = fill(loaded, "[MASK] cat [MASK] the [MASK]")[0]
    assert len(together.masks) == 3
    assert len({tuple(prediction.id for prediction in mask) for mask in together.masks}) > 1
    assert together.filled == "{} cat {} the {}".format(*(mask[0].token for mask in together.masks)).replace(
        " ##", ""
    )


def test_batches_change_nothing(loaded):
    texts = [f"{'the ' * (i % 7)}[MASK] {'cat ' * (i % 3)}[MASK]" for i in range(9)]
    alone = [fill(loaded, text)[0] for text in texts]
    together = fill(loaded, *texts, batch_size=4)
    assert [filled.text for filled in together] == texts
    for one, other in zip(alone, together, strict=True):
        assert one.filled == other.filled
        for mask, other_mask in zip(one.masks, other.masks, strict=True):
            assert [p.id for p in mask] == [p.id for p in other_mask]
            assert [p.probability for p in mask] == pytest.approx(
                [p.probability for p in other_mask], rel=1e-4
            )


@pytest.mark.parametrize(
    ("word", "text", "filled"),
    [
        ("house", "The  [MASK], it WAS dark!", "The  house, it WAS dark!"),
        ("##s", "Two Cat [MASK] sat.", "Two Cats sat."),
        ("##s", "[MASK] sat", "s sat"),
        ("house", "[MASK][MASK]", "househouse"),
        ("##ing", "it ran[MASK]!", "it raning!"),
    ],
)
def test_the_filled_text_keeps_the_users_own(always, word, text, filled):
    assert fill(always(word), text)[0].filled == filled


@pytest.mark.parametrize("special", WORDS[:5])
def test_special_tokens_are_never_predicted(always, special):
    (predictions,) = fill(always(special), "The [MASK].")[0].masks
    assert special not in [prediction.token for prediction in predictions]
    assert sum(prediction.probability for prediction in predictions) < 1e-6


def test_other_special_words_in_a_text_are_plain_text(loaded, monkeypatch):
    seen = []
    loaded.model.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    fill(loaded, "[SEP] [MASK] [CLS]")
    assert (seen[0] == 3).sum() == 1
    assert (seen[0] == 2).sum() == 1
    assert seen[0][0, :5].tolist() == [2, WORDS.index("["), WORDS.index("sep"), WORDS.index("]"), 4]


def test_unusable_texts_are_named(loaded):
    with pytest.raises(UserError, match=r"text 2: no \[MASK\] in 'the cat'$"):
        fill(loaded, "[MASK]", "the cat")
    with pytest.raises(UserError, match=r"text 1: no \[MASK\] in 'the \[mask\]'; write it as \[MASK\]"):
        fill(loaded, "the [mask]")
    with pytest.raises(UserError, match=r"text 1: no \[MASK\] in '(cat ){14}c\.\.\.'"):
        fill(loaded, "cat " * 30)
    with pytest.raises(
        UserError, match=r"text 1: 20 tokens with the special ones, but the model reads at most 19"
    ):
        fill(loaded, "the " * 17 + "[MASK]")
    assert fill(loaded, "the " * 16 + "[MASK]")


@pytest.mark.parametrize("top_k", [0, 33])
def test_top_k_out_of_range(loaded, top_k):
    with pytest.raises(UserError, match=f"--top-k {top_k}: give a number from 1 to 32"):
        fill(loaded, "[MASK]", top_k=top_k)


@pytest.fixture
def favoring(loaded, tmp_path):
    """A model with the tokenizer of another model type that predicts the last piece of a text everywhere."""

    def favor(model_type, text, **changes):
        folder = make_tokenizer_folder(model_type, tmp_path / model_type)
        if changes:
            change_json(folder / "tokenizer.json", **changes)
        tokenizer = Tokenizer.load(folder)
        model = random_model(nsp=False, vocab_size=tokenizer.vocab_size)
        with torch.no_grad():
            model.mlm_head.bias.fill_(0)
            model.mlm_head.bias[tokenizer.encode(text)[-1]] = 1000
        return replace(loaded, model=model, tokenizer=tokenizer)

    return favor


@pytest.mark.parametrize(
    ("model_type", "piece", "token", "text", "filled"),
    [
        ("roberta", "a the", "▁the", "So <mask> sat.", "So the sat."),
        ("roberta", "a the", "▁the", "So<mask>", "So the"),
        ("roberta", "a the", "▁the", "  <mask> sat", "the sat"),
        ("roberta", "a the", "▁the", "  a <mask>", "  a the"),
        ("roberta", "xs", "s", "cat <mask>.", "cats."),
        ("roberta", "é", "�", "<mask><mask>", "��"),
        ("modernbert", "a the", "▁the", "So [MASK] sat.", "So the sat."),
        ("xlm-roberta", "the", "▁the", "So <mask>, <mask>", "So the, the"),
        ("xlm-roberta", "cats", "s", "cat <mask>.", "cats."),
        ("deberta-v2", "cats", "s", "cat [MASK].", "cats."),
        ("albert", "the", "▁the", "[MASK]", "the"),
    ],
)
def test_pieces_of_every_kind_are_joined_to_the_text(favoring, model_type, piece, token, text, filled):
    (found,) = fill(favoring(model_type, piece), text, top_k=1)
    assert (found.filled, found.text) == (filled, text)
    assert {mask[0].token for mask in found.masks} == {token}


def test_every_model_reads_the_usual_mask_and_says_so_once(favoring, capsys):
    loaded = favoring("roberta", "a the")
    found = fill(loaded, "So [MASK] sat.", "a <mask>", "[MASK] [MASK]", batch_size=1)
    assert [each.filled for each in found] == ["So the sat.", "a the", "the the"]
    assert [len(each.masks) for each in found] == [1, 1, 2]
    said = capsys.readouterr().err
    assert said == "[MASK] is read as <mask>, the mask token of this model\n"
    fill(loaded, "a <mask>")
    assert capsys.readouterr().err == ""


def test_a_mask_that_the_tokenizer_does_not_find_is_named(favoring, tmp_path):
    folder = make_tokenizer_folder("roberta", tmp_path / "words")
    added = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    for token in added:
        token["single_word"] = True
    loaded = favoring("roberta", "a", added_tokens=added)
    assert fill(loaded, "a <mask>")
    with pytest.raises(UserError, match="text 1: this tokenizer does not find every <mask> in 'a<mask>b'"):
        fill(loaded, "a<mask>b")


def test_the_row_of_a_text_has_its_masks_as_words(loaded):
    read = MaskFiller(loaded, torch.device("cpu")).read(Line("The [MASK] cats, a[MASK]", "here"))
    assert [word.text for word in read.words] == ["The", "[MASK]", "cats", ",", "a[MASK]"]
    assert [list(word.tokens) for word in read.words] == [[1], [2], [3, 4], [5], [6, 7]]
    assert [read.row.ids[at] for at in (2, 7)] == [loaded.tokenizer.mask_id] * 2
