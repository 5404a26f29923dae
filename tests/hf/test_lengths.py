import pytest

from bertcli.errors import UserError
from bertcli.hf.folder import save_model_folder
from bertcli.hf.lengths import check_length, trained_length
from tests.hf.folders import random_model, saved_model, tiny_tokenizer


def test_the_length_that_a_model_was_trained_on(tmp_path):
    save_model_folder(tmp_path, random_model(), tiny_tokenizer(), trained_length=8)
    assert trained_length(tmp_path) == 8
    assert check_length(tmp_path, 8, "task.max_length") is None
    assert check_length(tmp_path, 9, "task.max_length") == (
        f"task.max_length: 9 tokens, but {tmp_path} was pretrained on rows of 8; "
        f"later positions are not trained yet"
    )


def test_a_folder_that_does_not_say_it(tmp_path):
    saved_model(tmp_path)
    assert trained_length(tmp_path) is None
    assert check_length(tmp_path, 19, "task.max_length") is None


def test_more_positions_than_there_are(tmp_path):
    saved_model(tmp_path)
    with pytest.raises(
        UserError, match=r"^--max-length: 20 tokens, but .* has 19 positions; give at most 19$"
    ):
        check_length(tmp_path, 20, "--max-length")
