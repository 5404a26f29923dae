import pytest
import torch

from bertcli.folders.model_folder import load_model_folder
from bertcli.inference.fill_mask import Pair, pairs_of, score_pairs
from bertcli.inference.lines import Line
from bertcli.system.errors import UserError
from tests.folders.folders import saved_model

CPU = torch.device("cpu")


@pytest.fixture
def loaded(tmp_path):
    saved_model(tmp_path)
    return load_model_folder(tmp_path)


def score(loaded, *pairs, batch_size=4):
    return list(score_pairs(loaded, [Pair(a, b, "here") for a, b in pairs], batch_size, CPU))


def test_the_probability_is_that_of_label_0(loaded):
    (scored,) = score(loaded, ("The cat sat.", "It ran!"))
    ids = torch.tensor([[2, 5, 7, 9, 21, 3, 34, 12, 23, 3]])
    segments = torch.tensor([[0, 0, 0, 0, 0, 0, 1, 1, 1, 1]])
    with torch.inference_mode():
        want = loaded.model.eval()(ids, segments).pair_logits_B2.softmax(-1)[0, 0].item()
    assert scored.is_next_probability == pytest.approx(want, rel=1e-5)
    assert 0.01 < want < 0.99
    assert scored.as_json() == {
        "text_a": "The cat sat.",
        "text_b": "It ran!",
        "is_next_probability": scored.is_next_probability,
    }


def test_batches_change_nothing(loaded):
    pairs = [("the " * (i % 5 + 1), "cat " * (i % 3 + 1)) for i in range(9)]
    together = score(loaded, *pairs)
    assert [(scored.text_a, scored.text_b) for scored in together] == pairs
    alone = [score(loaded, pair)[0].is_next_probability for pair in pairs]
    assert [scored.is_next_probability for scored in together] == pytest.approx(alone, rel=1e-4)


def test_a_pair_longer_than_the_model(loaded):
    message = r"here: 20 tokens with the special ones, but the model reads at most 19; shorten the texts"
    with pytest.raises(UserError, match=message):
        score(loaded, ("the " * 9, "cat " * 8))
    assert score(loaded, ("the " * 8, "cat " * 8))


def test_a_model_pretrained_without_nsp_is_refused(tmp_path):
    saved_model(tmp_path, nsp=False)
    with pytest.raises(UserError, match=r"no next-sentence head: give one that was pretrained with it"):
        score(load_model_folder(tmp_path), ("a", "b"))


@pytest.mark.parametrize(
    ("line", "found"),
    [("no tab", "1 columns"), ("a\tb\tc", "3 columns")],
)
def test_a_line_that_is_no_pair(line, found):
    with pytest.raises(
        UserError, match=f"x, line 3: expected two texts with a tab between them, found {found}"
    ):
        list(pairs_of([Line(line, "x, line 3")]))
