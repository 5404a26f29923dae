"""Folders mean the same to transformers' AutoTokenizer as here, whatever tokenizer they are made from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
from transformers import AutoTokenizer

from bertcli.errors import UserError
from bertcli.text.tokenizer import Tokenizer
from bertcli.text.word_cache import WordCache
from tests.text.tokenizer_kinds import KINDS, lines, pieces

READ = [name for name, kind in KINDS.items() if kind.refused is None]
LINES = lines(60)
PIECES = pieces(LINES, 700)


def their_ids(folder: Path) -> list[list[int]]:
    if not (folder / "config.json").exists():
        (folder / "config.json").write_text('{"model_type": "bert"}')
    theirs = AutoTokenizer.from_pretrained(folder)
    return theirs(LINES, add_special_tokens=False, verbose=False)["input_ids"]


@pytest.mark.parametrize("name", READ)
def test_a_folder_gives_the_same_ids_everywhere(tmp_path: Path, name: str):
    kind = KINDS[name]
    given = kind.write(tmp_path / "given", PIECES)
    ours = Tokenizer.load(given)
    ids = ours.encode_batch(LINES)
    if given.suffix == ".json":
        theirs = tokenizers.Tokenizer.from_file(str(given)).encode_batch(LINES, add_special_tokens=False)
        assert ids == [each.ids for each in theirs]
    else:
        assert ids == their_ids(tmp_path / "given")
    ours.save(tmp_path / "saved")
    assert ids == their_ids(tmp_path / "saved")
    again = Tokenizer.load(tmp_path / "saved")
    assert (again.hash, again.encode_batch(LINES)) == (ours.hash, ids)
    config = json.loads((tmp_path / "saved" / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == kind.written_class
    cached = WordCache(ours).encode(LINES)
    assert cached.ids.tolist() == [i for row in ids for i in row]


@pytest.mark.parametrize("name", [name for name in KINDS if name not in READ])
def test_what_would_be_read_otherwise_is_refused(tmp_path: Path, name: str):
    kind = KINDS[name]
    given = kind.write(tmp_path, PIECES)
    with pytest.raises(UserError, match=kind.refused):
        Tokenizer.load(given)


def test_registered_tokens_are_whole_and_berts_own_are_text(tmp_path: Path):
    tokenizer = Tokenizer.load(KINDS["added tokens"].write(tmp_path, PIECES))
    assert tokenizer.encode("x<ent>y").count(PIECES.index("<ent>")) == 1
    assert tokenizer.cut("a b") == ["a b"]
    assert tokenizer.mask_id not in tokenizer.encode("x [MASK] y")
    tokenizer.save(tmp_path / "saved")
    added = json.loads((tmp_path / "saved" / "tokenizer.json").read_text())["added_tokens"]
    assert {token["content"]: token["special"] for token in added} == {
        **dict.fromkeys(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "<ent>"), True),
        "newyork": False,
    }


def test_a_folder_of_another_pipeline_has_segments_and_special_tokens(tmp_path: Path):
    tokenizer = Tokenizer.load(KINDS["the course's"].write(tmp_path, PIECES))
    tokenizer.save(tmp_path / "saved", model_max_length=64)
    (tmp_path / "saved" / "config.json").write_text('{"model_type": "bert"}')
    theirs = AutoTokenizer.from_pretrained(tmp_path / "saved")
    a, b = tokenizer.encode("the cat"), tokenizer.encode("a dog")
    pair = theirs("the cat", "a dog")
    assert pair["input_ids"] == tokenizer.frame.row(a, b).ids
    assert pair["token_type_ids"] == [0] * (len(a) + 2) + [1] * (len(b) + 1)
    assert (theirs.mask_token_id, theirs.pad_token_id) == (tokenizer.mask_id, tokenizer.pad_id)
    assert theirs.model_max_length == 64
    assert tokenizer.lowercase


def test_an_id_that_a_registered_token_would_not_have_is_refused(tmp_path: Path):
    KINDS["BERT, uncased"].write(tmp_path, PIECES)
    path = tmp_path / "tokenizer_config.json"
    config = json.loads(path.read_text())
    for decoder, message in (
        ({"3000": {"content": "<new>", "special": True}}, "'<new>' has the id 3000 there"),
        ({"x": {}}, "the tokens that it registers cannot be read"),
        ([], "the tokens that it registers cannot be read"),
    ):
        path.write_text(json.dumps(config | {"added_tokens_decoder": decoder}))
        with pytest.raises(UserError, match=message):
            Tokenizer.load(tmp_path)


def test_a_token_that_transformers_would_lose_is_refused(tmp_path: Path):
    Tokenizer.load(KINDS["added tokens"].write(tmp_path / "given", PIECES)).save(tmp_path / "saved")
    path = tmp_path / "saved" / "tokenizer_config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"added_tokens_decoder": {}}))
    with pytest.raises(
        UserError, match=r"disagree: 'newyork' is registered in the first, but not in added_tok"
    ):
        Tokenizer.load(tmp_path / "saved")


def test_a_class_that_reads_a_missing_file_is_refused(tmp_path: Path):
    KINDS["the course's, wrapped"].write(tmp_path, PIECES)
    (tmp_path / "tokenizer.json").rename(tmp_path / "elsewhere.json")
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES))
    with pytest.raises(UserError, match=r"which reads a tokenizer\.json, but there is none"):
        Tokenizer.load(tmp_path)
