"""What makes the Rust code panic is an error with the file's name, and leaves no trace on standard error."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bertcli.system.errors import UserError
from bertcli.tokenizer.limits import survive
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.folders.folders import tiny_tokenizer
from tests.small_runs import run_process

BOMB = {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": ""}


def with_normalizer(folder: Path, normalizer: Any) -> Path:
    tiny_tokenizer().save(folder)
    path = folder / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"normalizer": normalizer}))
    return path


def test_a_regex_bomb_ends_in_words_on_the_command_line(tmp_path: Path):
    path = with_normalizer(tmp_path, BOMB)
    done = run_process("tokenizer", "encode", "--tokenizer", path, "a" * 40 + "!")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {path}: the tokenizers library failed with this tokenizer: Onig")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("normalizer", "message"),
    [
        (
            BOMB | {"pattern": {"Regex": "(("}},
            "not a tokenizer.json of the tokenizers library: Oniguruma error",
        ),
        (
            {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
            r"its table of characters \(precompiled_charsmap\) is damaged",
        ),
    ],
)
def test_what_cannot_be_loaded_is_an_error(tmp_path: Path, capfd: Any, normalizer: Any, message: str):
    path = with_normalizer(tmp_path, normalizer)
    with pytest.raises(UserError, match=f"{path}: .*{message}"):
        Tokenizer.load(path)
    assert capfd.readouterr().err == ""


def test_every_way_to_encode_survives(tmp_path: Path, capfd: Any):
    tokenizer = Tokenizer.load(with_normalizer(tmp_path, BOMB))
    text = "a" * 40 + "!"
    for encode in (
        lambda: tokenizer.encode(text),
        lambda: tokenizer.encode_batch([text]),
        lambda: tokenizer.encode_with_spans([text]),
    ):
        with pytest.raises(UserError, match="failed with this tokenizer"):
            encode()
    assert capfd.readouterr().err == ""


def test_other_errors_and_what_is_written_meanwhile_stay(capfd: Any):
    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        survive(fail, "here", quietly=True)

    assert survive(lambda: os.write(2, b"a warning\n"), "here", quietly=True) == 10
    assert capfd.readouterr().err == "a warning\n"
