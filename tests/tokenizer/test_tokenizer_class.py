"""Folders mean the same to transformers' AutoTokenizer as here, whatever tokenizer they are made from."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest
import tokenizers
import transformers
from transformers import AutoTokenizer

from bertcli.families.family import TokenizerKind
from bertcli.families.tokenizers import TOKENIZERS
from bertcli.system.errors import UserError
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.train import train_tokenizer
from bertcli.tokenizer.word_cache import WordCache
from tests.tokenizer.tokenizer_kinds import KINDS, lines, pieces
from tests.tokenizer.tokenizers_of import LINES as ODD_LINES
from tests.tokenizer.tokenizers_of import (
    MODEL_TYPES,
    change_json,
    make_tokenizer_folder,
    sample_lines,
    write_json,
)

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


NEW_KINDS: tuple[TokenizerKind, ...] = ("wordpiece", "byte-bpe", "unigram")


def new_tokenizer(kind: TokenizerKind, model_type: str) -> Tokenizer:
    facts = TOKENIZERS[model_type]
    return trained_once(kind, next(name for name, other in TOKENIZERS.items() if other == facts))


@cache
def trained_once(kind: TokenizerKind, model_type: str) -> Tokenizer:
    return train_tokenizer(
        sample_lines(100), vocab_size=500, lowercase=False, kind=kind, facts=TOKENIZERS[model_type]
    )


def classes_of(model_type: str) -> list[str]:
    """`Auto*`, the class that obeys tokenizer.json, and the model type's own ones in transformers."""
    names = [each for name in TOKENIZERS[model_type].classes for each in (name, f"{name}Fast")]
    return ["AutoTokenizer", "PreTrainedTokenizerFast", *names]


def classes_that_differ(folder: Path, model_type: str) -> set[str]:
    """The classes that give other ids than bertcli to texts, with or without a mask, or to pairs."""
    ours, differ = Tokenizer.load(folder), set()
    texts = [*ODD_LINES, "the cat", f"the {ours.mask_token} sat"]
    rows = [list(ours.frame.row(ids).ids) for ids in ours.encode_with_masks(texts)]
    pair = list(ours.frame.row(ours.encode("the cat"), ours.encode("a dog")).ids)
    for name in classes_of(model_type):
        try:
            theirs = getattr(transformers, name).from_pretrained(folder)
        except (TypeError, ValueError):  # it cannot read a vocabulary of another kind
            differ.add(name)
            continue
        both = theirs("the cat", "a dog")
        special = (theirs.cls_token_id, theirs.pad_token_id, theirs.mask_token_id)
        same = (
            theirs(texts)["input_ids"] == rows
            and both["input_ids"] == pair
            and special == (ours.frame.prefix[0], ours.pad_id, ours.mask_id)
            and ("token_type_ids" in both) == (TOKENIZERS[model_type].segments and ours.frame.two_segments)
        )
        differ |= set() if same else {name}
    return differ


@pytest.mark.parametrize("model_type", MODEL_TYPES)
@pytest.mark.parametrize("kind", ["published", *NEW_KINDS])
def test_every_class_gives_the_same_ids_or_is_named(tmp_path: Path, model_type: str, kind: TokenizerKind):
    if kind == "published":
        ours = Tokenizer.load(make_tokenizer_folder(model_type, tmp_path / "given"))
    else:
        ours = new_tokenizer(kind, model_type)
    (tmp_path / "saved").mkdir()
    write_json(tmp_path / "saved" / "config.json", {"model_type": model_type})
    ours.save(tmp_path / "saved")
    differ = classes_that_differ(tmp_path / "saved", model_type)
    assert differ <= set(ours.other_classes(model_type))
    assert not differ & {"AutoTokenizer", "PreTrainedTokenizerFast"}
    if model_type == "roberta" and kind in ("published", "byte-bpe"):  # normalization apart
        theirs = transformers.RobertaTokenizer.from_pretrained(tmp_path / "saved")
        assert theirs("the cat")["input_ids"] == ours.frame.row(ours.encode("the cat")).ids
        assert (theirs.bos_token, theirs.eos_token) == ("<s>", "</s>")


@pytest.mark.parametrize("model_type", ["albert", "deberta-v2", "roberta", "xlm-roberta", "camembert"])
def test_a_vocab_txt_of_another_family_is_read_by_the_way_that_the_refusal_names(
    tmp_path: Path, model_type: str
):
    write_json(tmp_path / "config.json", {"model_type": model_type})
    (tmp_path / "vocab.txt").write_text("\n".join(PIECES), encoding="utf-8")
    with pytest.raises(UserError, match=r"set tokenizer_class to BertTokenizer in .*tokenizer_config\.json"):
        Tokenizer.load(tmp_path)
    change_json(tmp_path / "tokenizer_config.json", tokenizer_class="BertTokenizer")
    ours = Tokenizer.load(tmp_path)
    assert ours.unk_id not in ours.encode("the")
    assert ours.encode_batch(LINES) == their_ids(tmp_path)
    (tmp_path / "saved").mkdir()
    write_json(tmp_path / "saved" / "config.json", {"model_type": model_type})
    ours.save(tmp_path / "saved")
    assert classes_that_differ(tmp_path / "saved", model_type) <= set(ours.other_classes(model_type))
