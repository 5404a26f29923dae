import json
from pathlib import Path

import pytest

from bertcli.folders.lengths import LongRows, changed_positions, check_length, length_after, trained_length
from bertcli.folders.model_folder import save_model_folder
from bertcli.model.architecture import Architecture
from bertcli.system.errors import UserError
from tests.folders.folders import random_model, saved_model, tiny_tokenizer


def declare(folder: Path, length: object) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": length}))


def test_the_length_that_a_model_was_trained_on(tmp_path):
    save_model_folder(tmp_path, random_model(), tiny_tokenizer(), trained_length=8)
    assert trained_length(tmp_path) == 8
    assert length_after(tmp_path, 6) == 8
    assert length_after(tmp_path, 12) == 12
    assert length_after(None, 6) == 6


@pytest.mark.parametrize("length", [10**30, 1e30, None, "512", True, 0])
def test_a_folder_that_does_not_say_it(tmp_path, length):
    declare(tmp_path, length)
    assert trained_length(tmp_path) is None
    assert length_after(tmp_path, 6) is None
    long_rows = LongRows(tmp_path)
    long_rows.count([10**6])
    assert long_rows.line is None


def test_without_a_tokenizer_config_nothing_is_known(tmp_path):
    assert trained_length(tmp_path) is None


def test_long_rows_are_counted_and_said_once(tmp_path, capsys):
    declare(tmp_path, 8)
    long_rows = LongRows(tmp_path)
    long_rows.count([8, 3])
    assert long_rows.line is None
    long_rows.count([9, 1000])
    long_rows.tell()
    assert capsys.readouterr().err == (
        f"warning: 2 of 4 rows are longer than 8 tokens, the longest that {tmp_path} was trained on; its "
        "positions after them are not trained: go on pretraining it with a larger data.max_length, or give "
        "shorter texts\n"
    )


def test_more_positions_than_there_are(tmp_path):
    saved_model(tmp_path)
    check_length(tmp_path, 19, "--max-length")
    with pytest.raises(
        UserError, match=r"^--max-length: 20 tokens, but .* has 19 positions; give at most 19$"
    ):
        check_length(tmp_path, 20, "--max-length")


def test_other_positions_than_before_are_said():
    table, rotary = (
        Architecture(40, 8, 2, 2, 16, 512),
        Architecture(40, 8, 2, 2, 16, max_positions=1024, position_table=False, rotary_bases=(1e4, 1e4)),
    )
    assert list(changed_positions(table, table)) == []
    assert list(changed_positions(table, table.with_positions(1024))) == [
        "positions: 512 -> 1,024; the later ones begin as copies of the first 512"
    ]
    assert list(changed_positions(rotary, rotary.with_positions(8192).with_rotary_base(1.6e5))) == [
        "positions: 1,024 -> 8,192; none is learned",
        "rotary base: 10,000 -> 160,000",
    ]
