"""Vocabularies without a tokenizer.json, with options and damage; parity is in test_tokenizer_parity.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from bertcli.system.errors import UserError
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.tokenizer.tokenizers_of import change_json, make_tokenizer_folder, sample_lines

TEXTS = list(sample_lines()[-60:])


@pytest.mark.parametrize(
    ("model_type", "options"),
    [
        ("albert", {"do_lower_case": False}),
        ("albert", {"keep_accents": True, "remove_space": True}),
        ("albert", {"add_prefix_space": False}),
        ("deberta-v2", {"do_lower_case": True, "split_by_punct": True}),
        ("xlm-roberta", {"add_prefix_space": False}),
        ("roberta", {"add_prefix_space": True}),
        ("deberta", {"add_prefix_space": True, "do_lower_case": False}),
    ],
)
def test_options_mean_what_they_mean_to_transformers(
    tmp_path: Path, model_type: str, options: dict[str, bool]
):
    make_tokenizer_folder(model_type, tmp_path, slow=True)
    plain = Tokenizer.load(tmp_path).encode_batch(TEXTS)
    change_json(tmp_path / "tokenizer_config.json", **options)
    ours, theirs = Tokenizer.load(tmp_path), AutoTokenizer.from_pretrained(tmp_path)
    encoded = theirs(TEXTS, add_special_tokens=False, verbose=False)["input_ids"]
    assert ours.encode_batch(TEXTS) == encoded != plain
    ours.save(tmp_path)
    assert Tokenizer.load(tmp_path).encode_batch(TEXTS) == ours.encode_batch(TEXTS)


def test_a_mask_may_say_itself_whether_it_takes_the_blank(tmp_path: Path):
    make_tokenizer_folder("roberta", tmp_path, slow=True)
    for strips in (False, True):
        mask = {"content": "<mask>", "lstrip": strips, "__type": "AddedToken", "special": True}
        change_json(tmp_path / "tokenizer_config.json", mask_token=mask)
        assert Tokenizer.load(tmp_path).mask_strips == strips


def test_damaged_byte_level_files_are_refused(tmp_path: Path):
    make_tokenizer_folder("roberta", tmp_path, slow=True)
    merges = (tmp_path / "merges.txt").read_text(encoding="utf-8")
    for text, message in (
        ("#version: 0.2\nĠ t h\n", r"merges.txt: line 2 is not two pieces of vocab.json that make a third"),
        ("zz yy\n", r"merges.txt: line 1 is not two pieces of vocab.json that make a third: 'zz yy'"),
    ):
        (tmp_path / "merges.txt").write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=message):
            Tokenizer.load(tmp_path)
    (tmp_path / "merges.txt").write_bytes(b"\xff")
    with pytest.raises(UserError, match=r"merges.txt: not UTF-8 at byte 0"):
        Tokenizer.load(tmp_path)
    (tmp_path / "merges.txt").unlink()
    with pytest.raises(UserError, match=r"merges.txt: missing; vocab.json needs it"):
        Tokenizer.load(tmp_path)
    (tmp_path / "merges.txt").write_text(merges.replace("\n", "\r\n"), encoding="utf-8", newline="")
    assert Tokenizer.load(tmp_path).encode("the house")
    (tmp_path / "vocab.json").write_text(json.dumps({"a": "b"}))
    with pytest.raises(UserError, match=r"vocab.json: expected pieces with their ids"):
        Tokenizer.load(tmp_path)


def test_a_model_without_its_unknown_token_is_refused(tmp_path: Path):
    make_tokenizer_folder("albert", tmp_path, slow=True)
    change_json(tmp_path / "tokenizer_config.json", unk_token="[gone]")
    with pytest.raises(
        UserError, match=r"spiece.model: has no piece \[gone\], the unknown token\. Set unk_token"
    ):
        Tokenizer.load(tmp_path)
