import json

import pytest

from tests.folders.folders import saved_model


def test_a_pair(run_bertcli, model):
    code, out, _ = run_bertcli("predict-next", model, "The cat.", "It sat.", "--json")
    assert code == 0
    scored = json.loads(out)
    assert (scored["text_a"], scored["text_b"]) == ("The cat.", "It sat.")
    assert 0 < scored["is_next_probability"] < 1
    _, out, _ = run_bertcli("predict-next", model, "The cat.", "It sat.")
    assert out == f"{scored['is_next_probability']:7.2%}  The cat.  ->  It sat.\n"


def test_a_file_of_pairs(run_bertcli, model, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("the\tcat\n\nit ran\tit sat\nit was\t\n")
    _, out, _ = run_bertcli("predict-next", model, "--input", path, "--json")
    assert [json.loads(line)["text_b"] for line in out.splitlines()] == ["cat", "", "it sat", ""]


def test_an_empty_text_is_scored_as_in_a_file(run_bertcli, model):
    code, out, _ = run_bertcli("predict-next", model, "it was", "", "--json")
    assert code == 0
    assert json.loads(out)["text_b"] == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["only one"], "error: give two texts, A and B, each in quotation marks; found 1"),
        (["a", "b", "c"], "error: give two texts, A and B, each in quotation marks; found 3"),
        (["", " "], "error: the command line holds no text"),
        (["the " * 10, "cat " * 10], "error: the pair: 23 tokens with the special ones"),
    ],
)
def test_bad_input_exits_2_with_its_message_alone(run_bertcli, model, arguments, message):
    code, out, err = run_bertcli("predict-next", model, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(message)


def test_a_model_without_the_head_is_refused(run_bertcli, tmp_path):
    saved_model(tmp_path, nsp=False)
    code, _, err = run_bertcli("predict-next", tmp_path, "a", "b")
    assert code == 2
    assert "error: the model has no next-sentence head" in err
