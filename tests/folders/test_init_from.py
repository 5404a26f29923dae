"""A model to go on from decides its sizes and vocabulary: no key of a config may say otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bertcli.config.schema import PretrainConfig
from bertcli.folders.locate import locate_init_from
from bertcli.folders.model_folder import save_model_folder
from bertcli.system.errors import UserError
from tests.folders.folders import WORDS, random_model, saved_model, tiny_tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "odd"
    saved_model(folder)
    return folder


def config(folder: Path, **sections: dict[str, Any]) -> PretrainConfig:
    model = {"init_from": str(folder)} | sections.pop("model", {})
    return PretrainConfig.model_validate(
        {"output_dir": "run", "corpus": {"files": ["classics"]}, "model": model, **sections}
    )


def test_what_is_true_of_the_folder_is_recorded(folder: Path):
    found = locate_init_from(config(folder))
    model, tokenizer = found.model, found.tokenizer
    assert (model.preset, model.layers, model.hidden, model.heads, model.feed_forward) == (None, 2, 15, 5, 23)
    assert model.max_positions == 19
    assert (tokenizer.vocab_size, tokenizer.lowercase, tokenizer.strip_accents) == (len(WORDS), True, True)
    again = PretrainConfig.model_validate(found.model_dump(mode="json"))  # as config.yaml brings it back
    assert locate_init_from(again) == found


def test_the_preset_that_fits_is_recorded(tmp_path: Path):
    sizes: dict[str, Any] = {"hidden": 128, "layers": 2, "heads": 2, "feed_forward": 512}
    save_model_folder(tmp_path, random_model(**sizes), tiny_tokenizer())
    for given in ({}, {"preset": "tiny"}, {"preset": "base"} | sizes):
        assert locate_init_from(config(tmp_path, model=given)).model.preset == "tiny"
    with pytest.raises(
        UserError, match=r"model.preset: small; the folder has layers 2 instead of 4, hidden 128"
    ):
        locate_init_from(config(tmp_path, model={"preset": "small"}))


def test_every_key_that_contradicts_is_named_at_once(folder: Path):
    model = {"layers": 4, "heads": 5, "feed_forward": 60, "max_positions": 16, "hidden": 15}
    tokenizer = {"vocab_size": 30522, "lowercase": False, "strip_accents": False}
    with pytest.raises(UserError) as caught:
        locate_init_from(config(folder, model=model, tokenizer=tokenizer))
    assert str(caught.value).split("\n  ") == [
        f"model.init_from: {folder} sets sizes and vocabulary, but the config has other values:",
        "model.feed_forward: 60; the folder has 23",
        "model.layers: 4; the folder has 2",
        "model.max_positions: 16; the folder has 19",
        "tokenizer.lowercase: false; the folder has true",
        "tokenizer.strip_accents: false; the folder has true",
        "tokenizer.vocab_size: 30522; the folder has 37",
        "Leave these keys out, or leave model.init_from out to train a new model",
    ]


def test_more_positions_than_the_folder_has_are_recorded(folder: Path):
    found = locate_init_from(config(folder, model={"max_positions": 40}))
    assert (found.model.max_positions, found.model.layers) == (40, 2)
    assert locate_init_from(found) == found


def test_null_says_nothing(folder: Path):
    sections = {"model": {"layers": None, "heads": None}, "tokenizer": {"strip_accents": None}}
    assert locate_init_from(config(folder, **sections)).model.layers == 2
