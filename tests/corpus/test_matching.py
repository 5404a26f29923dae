"""A store that stands: opened while it fits config and corpus; else an error lists what differs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bertcli.corpus.build import prepare_store
from bertcli.system.errors import UserError
from bertcli.tokenizer import tokenizer
from tests.corpus.builds import make_config, silent, write_corpus_folder
from tests.decided import tokenizer_config


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_corpus_folder(tmp_path)


def test_a_store_that_stands_is_opened(folder: Path):
    lines: list[str] = []
    config = make_config(folder)
    first = prepare_store(config, lines.append)
    assert "training a WordPiece vocabulary of 500 entries on all of the text" in lines
    lines.clear()
    again = prepare_store(config, lines.append)
    assert lines == []
    assert again.manifest == first.manifest
    shutil.rmtree(folder / "corpus")
    assert prepare_store(config, lines.append).manifest == first.manifest  # a corpus that is gone is no error


def test_a_touched_file_is_no_change(folder: Path):
    config = make_config(folder)
    first = prepare_store(config, silent)
    os.utime(folder / "corpus" / "a.txt")
    assert prepare_store(config, silent).manifest == first.manifest


def append(path: Path) -> None:
    path.write_text(path.read_text() + "More.\n")


def add_a_file(path: Path) -> None:
    (path.parent / "d.txt").write_text("A new file.\n")


def replace_a_letter(path: Path) -> None:
    path.write_text(path.read_text().replace("e", "o", 1))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (append, r"a.txt: the file changed, from .* bytes to "),
        (replace_a_letter, r"a.txt: the file changed; its size is the same"),
        (add_a_file, r"d.txt: this file is new"),
    ],
)
def test_a_corpus_that_changed_is_an_error_until_overwritten(
    folder: Path, change: Callable[[Path], None], message: str
):
    config = make_config(folder)
    before = prepare_store(config, silent).manifest
    change(folder / "corpus" / "a.txt")
    with pytest.raises(UserError, match=message) as error:
        prepare_store(config, silent)
    assert "prepare CONFIG --overwrite, or name another folder in corpus.store" in str(error.value)
    assert prepare_store(config, silent, overwrite=True).manifest != before
    assert [path.name for path in (folder / "run").iterdir()] == ["store"]


def test_other_options_are_listed(folder: Path):
    prepare_store(make_config(folder), silent)
    other = make_config(folder, tokenizer_config(vocab_size=600), language="de")
    with pytest.raises(UserError, match="built from something else") as error:
        prepare_store(other, silent)
    assert "corpus.language: 'en' in the store, 'de' in the config" in str(error.value)
    assert "tokenizer.vocab_size: 500 in the store, 600 in the config" in str(error.value)


def test_another_tokenizer_under_the_same_name_is_an_error(folder: Path):
    trained = prepare_store(make_config(folder), silent).tokenizer
    trained.save(folder / "tokenizer")
    config = make_config(
        folder, tokenizer_config(path=str(folder / "tokenizer")), store=str(folder / "other")
    )
    assert prepare_store(config, silent).tokenizer.hash == trained.hash
    path = folder / "tokenizer" / "tokenizer.json"
    path.write_text(path.read_text().replace('"lowercase": true', '"lowercase": false'))
    with pytest.raises(UserError, match="tokenizer: the tokenizer has changed"):
        prepare_store(config, silent)


def test_each_tokenizer_is_read_once(folder: Path, monkeypatch: pytest.MonkeyPatch):
    read: list[Path] = []
    read_pipeline = tokenizer.read_pipeline
    monkeypatch.setattr(
        tokenizer, "read_pipeline", lambda path, given: (read.append(path), read_pipeline(path, given))[1]
    )
    config, run = make_config(folder), folder / "run"
    prepare_store(config, silent).tokenizer.save(folder / "given")
    assert read == [run / "store.partial" / "tokenizer", folder / "given"]
    prepare_store(config, silent)
    assert read[2:] == [run / "store" / "tokenizer"]
    config = make_config(folder, tokenizer_config(path=str(folder / "given")), store=str(folder / "other"))
    prepare_store(config, silent)
    prepare_store(config, silent)
    assert read[3:] == [
        folder / "given",
        folder / "other.partial" / "tokenizer",
        folder / "other" / "tokenizer",
    ]
