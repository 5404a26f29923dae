"""Tokenizers of every model type give the ids, places and rows of transformers' AutoTokenizer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import pre_tokenizers
from transformers import AutoTokenizer

from bertcli.tokenizer.pieces import trim_places
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.tokenizer.tokenizers_of import (
    BPE_TYPES,
    MODEL_TYPES,
    SLOW_TYPES,
    change_json,
    make_tokenizer_folder,
    sample_lines,
)

TEXTS = sample_lines()[-150:]
LAYOUTS = [(kind, False) for kind in MODEL_TYPES] + [(kind, True) for kind in SLOW_TYPES]
NAMES = [f"{kind}{'-slow' if slow else ''}" for kind, slow in LAYOUTS]
PAIRS = (("the cat", "a dog"), ("", "x"), ("é 🎉", " "))
WORDS = ["the", "", "cat's", "日本", "é", "🎉", "A.B", "-"]
NO_SEGMENTS = ("roberta", "xlm-roberta", "camembert", "distilbert", "modernbert")
LOST_FLAG = [("roberta", True), ("deberta", True)]
"""Where transformers 5 loses a flag of the mask that transformers 4, and published tokenizer.jsons, have."""


@pytest.fixture(scope="module", params=LAYOUTS, ids=NAMES)
def layout(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """(model type, whether without tokenizer.json, folder)."""
    model_type, slow = request.param
    return model_type, slow, make_tokenizer_folder(model_type, tmp_path_factory.mktemp("given"), slow)


@pytest.fixture(scope="module")
def ours(layout: tuple[str, bool, Path]) -> Tokenizer:
    return Tokenizer.load(layout[2])


@pytest.fixture(scope="module")
def theirs(layout: tuple[str, bool, Path]) -> Any:
    return AutoTokenizer.from_pretrained(layout[2])


@pytest.fixture(scope="module")
def saved(layout: tuple[str, bool, Path], ours: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    shutil.copy(layout[2] / "config.json", folder)
    ours.save(folder, model_max_length=77)
    return folder


def assert_same_ids_and_places(ours: Tokenizer, theirs) -> None:
    encoded = theirs(list(TEXTS), add_special_tokens=False, verbose=False, return_offsets_mapping=True)
    assert ours.encode_batch(TEXTS) == encoded["input_ids"]
    for text, placed, offsets in zip(
        TEXTS, ours.encode_with_spans(TEXTS), encoded["offset_mapping"], strict=True
    ):
        spans = np.array(offsets, np.int32).reshape(-1, 2)
        assert placed.spans.tolist() == trim_places(text, spans).tolist(), text


def assert_same_rows(ours: Tokenizer, theirs) -> None:
    for a, b in PAIRS:
        row = ours.frame.row(ours.encode(a), ours.encode(b))
        pair = theirs(a, b, return_token_type_ids=True)
        assert pair["input_ids"] == row.ids
        assert sum(pair["token_type_ids"]) == row.length - row.second_starts
        assert theirs(a)["input_ids"] == ours.frame.row(ours.encode(a)).ids


def masked(mask: str) -> list[str]:
    return [
        f"the {mask} sat.",
        mask,
        f"a{mask}b",
        f"{mask} {mask}.",
        f"x  {mask} y",
        f" {mask}",
        "é\u00a0" + mask,
    ]


def test_a_folder_means_what_it_means_to_transformers(
    layout: tuple[str, bool, Path], ours: Tokenizer, theirs: Any
):
    model_type, slow, _ = layout
    assert_same_ids_and_places(ours, theirs)
    assert (ours.mask_id, ours.pad_id, ours.unk_id) == (
        theirs.mask_token_id,
        theirs.pad_token_id,
        theirs.unk_token_id,
    )
    texts = masked(ours.mask_token)
    if (model_type, slow) not in LOST_FLAG:
        assert ours.encode_with_masks(texts) == theirs(texts, add_special_tokens=False)["input_ids"]
    if model_type != "deberta":  # whose class writes two separators
        assert_same_rows(ours, theirs)


def test_a_saved_folder_is_the_same_to_transformers(
    layout: tuple[str, bool, Path], ours: Tokenizer, saved: Path
):
    theirs = AutoTokenizer.from_pretrained(saved)
    assert_same_ids_and_places(ours, theirs)
    assert_same_rows(ours, theirs)
    texts = masked(ours.mask_token)
    assert ours.encode_with_masks(texts) == theirs(texts, add_special_tokens=False)["input_ids"]
    assert (ours.mask_id, ours.pad_id, ours.mask_token) == (
        theirs.mask_token_id,
        theirs.pad_token_id,
        theirs.mask_token,
    )
    assert theirs.model_max_length == 77
    assert ("token_type_ids" in theirs("a", "b")) == (layout[0] not in NO_SEGMENTS)
    assert (saved / "vocab.txt").exists() == (ours.kind == "WordPiece")


def test_a_saved_folder_is_the_same_here(ours: Tokenizer, saved: Path):
    again = Tokenizer.load(saved)
    assert (again.hash, again.frame, again.special_ids, again.mask_strips) == (
        ours.hash,
        ours.frame,
        ours.special_ids,
        ours.mask_strips,
    )
    assert (again.continuation == ours.continuation).all()


def test_a_folder_that_transformers_saved_is_read(
    layout: tuple[str, bool, Path], ours: Tokenizer, tmp_path: Path
):
    AutoTokenizer.from_pretrained(layout[2]).save_pretrained(tmp_path)
    shutil.copy(layout[2] / "config.json", tmp_path)
    again = Tokenizer.load(tmp_path)
    assert again.encode_batch(TEXTS) == ours.encode_batch(TEXTS)
    assert again.frame == ours.frame


def test_words_are_cut_as_after_a_blank(layout: tuple[str, bool, Path], ours: Tokenizer, saved: Path):
    for source in (layout[2], saved):
        theirs = AutoTokenizer.from_pretrained(source, add_prefix_space=True)
        if ours.kind == "BPE" and type(theirs).__name__ == "TokenizersBackend":  # ignores the option
            theirs.backend_tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        expected = theirs(WORDS, is_split_into_words=True, add_special_tokens=False)["input_ids"]
        assert [i for ids in ours.encode_words(WORDS) for i in ids] == expected


@pytest.mark.parametrize("model_type", BPE_TYPES)
def test_byte_level_words_of_a_tokenizer_that_adds_the_blank_itself(tmp_path: Path, model_type: str):
    folder = make_tokenizer_folder(model_type, tmp_path)
    pieces = Tokenizer.load(folder).encode_words(["cat"])
    data = json.loads((folder / "tokenizer.json").read_text())
    data["pre_tokenizer"]["add_prefix_space"] = True
    change_json(folder / "tokenizer.json", **data)
    change_json(folder / "tokenizer_config.json", add_prefix_space=True)
    ours = Tokenizer.load(folder)
    assert ours.encode_words(["cat"]) == ours.encode_batch(["cat"]) == pieces
    assert_same_ids_and_places(ours, AutoTokenizer.from_pretrained(folder))


def test_special_tokens_in_a_text_are_text(ours: Tokenizer):
    special = list(map(ours.token, ours.special_ids))
    texts = [f"a {token} b{token}" for token in special]
    never = set(ours.special_ids) - {ours.unk_id}
    for ids in [*ours.encode_batch(texts), *ours.encode_words(special)]:
        assert not never & set(ids)
    for text, placed in zip(texts, ours.encode_with_spans(texts), strict=True):
        assert placed.ids == ours.encode(text)
    both = ours.encode_with_masks([f"{token} {ours.mask_token}" for token in special])
    for token, ids in zip(special, both, strict=True):
        assert ids.count(ours.mask_id) == 1 + (token == ours.mask_token)
        assert not (never - {ours.mask_id}) & set(ids)


def test_pieces_are_readable(ours: Tokenizer):
    text = "the cat sat on the house"
    ids = ours.encode(text)
    assert ours.join(map(ours.token, ids)) == ours.decode(ids).strip() == text
    starts = [i for i, token_id in enumerate(ids) if not ours.continuation[token_id]]
    assert len(starts) == len(text.split()) - (ours.kind == "BPE")  # the first one there has no blank
    readable = [ours.readable(i) for i in ours.encode("the the")]
    if ours.kind == "WordPiece":
        assert (readable[-1], ours.spelling.prefix) == ("the", "##")
    else:
        assert (readable[-1], ours.spelling.prefix) == ("▁the", "")
