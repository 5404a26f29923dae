"""Which files a class of transformers or a model type reads, and where they contradict each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tokenizers
from tokenizers import normalizers, processors
from transformers import AutoTokenizer

from bertcli.system.errors import UserError
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.tokenizer.tokenizers_of import change_json, make_tokenizer_folder, sample_lines, write_json

TEXTS = list(sample_lines()[-60:])
CONFIG = "tokenizer_config.json"


def change_pipeline(folder: Path, **values: object) -> None:
    change_json(folder / "tokenizer.json", **values)


def their_ids(folder: Path) -> list[list[int]]:
    return AutoTokenizer.from_pretrained(folder)(TEXTS, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize(
    "name", ["RobertaTokenizer", "RobertaTokenizerFast", "PreTrainedTokenizerFast", None]
)
def test_a_class_that_would_destroy_a_tokenizer_json_is_not_followed(tmp_path: Path, name: str | None):
    """A WordPiece in a RoBERTa: transformers' class makes every word unknown."""
    make_tokenizer_folder("bert", tmp_path)
    ids = Tokenizer.load(tmp_path).encode_batch(TEXTS)
    write_json(tmp_path / "config.json", {"model_type": "roberta"})
    special = {
        role: f"[{role[:-6].upper()}]" for role in ("pad_token", "unk_token", "cls_token", "sep_token")
    }
    write_json(tmp_path / CONFIG, {"tokenizer_class": name, **special, "mask_token": "[MASK]"})
    ours = Tokenizer.load(tmp_path)
    assert ours.encode_batch(TEXTS) == ids
    ours.save(tmp_path)
    assert Tokenizer.load(tmp_path).hash == ours.hash
    assert their_ids(tmp_path) == ids


def test_one_model_type_may_have_the_tokenizer_of_another(tmp_path: Path):
    """As the multilingual MiniLMs: BERT with XLM-RoBERTa's tokenizer."""
    make_tokenizer_folder("xlm-roberta", tmp_path)
    before = Tokenizer.load(tmp_path)
    write_json(tmp_path / "config.json", {"model_type": "bert"})
    change_json(tmp_path / CONFIG, tokenizer_class="XLMRobertaTokenizer")
    ours = Tokenizer.load(tmp_path)
    assert (ours.hash, ours.mask_token) == (before.hash, "<mask>")
    assert ours.encode_batch(TEXTS) == their_ids(tmp_path)
    (tmp_path / CONFIG).unlink()
    with pytest.raises(UserError, match=r"tokenizer.json: a Unigram tokenizer; BERT's is a WordPiece\. Give"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("in_file", [False, True])
@pytest.mark.parametrize("in_config", [None, False, True])
def test_the_prefix_blank_is_that_of_the_class_and_its_option(
    tmp_path: Path, in_file: bool, in_config: bool | None
):
    make_tokenizer_folder("roberta", tmp_path)
    data = json.loads((tmp_path / "tokenizer.json").read_text())
    change_pipeline(tmp_path, pre_tokenizer=data["pre_tokenizer"] | {"add_prefix_space": in_file})
    if in_config is not None:
        change_json(tmp_path / CONFIG, add_prefix_space=in_config)
    assert Tokenizer.load(tmp_path).encode_batch(TEXTS) == their_ids(tmp_path)
    change_json(tmp_path / CONFIG, tokenizer_class="PreTrainedTokenizerFast")
    assert Tokenizer.load(tmp_path).encode_batch(TEXTS) == their_ids(tmp_path)


def test_debertas_rows_are_the_originals_also_where_its_class_wrote_others(tmp_path: Path):
    make_tokenizer_folder("deberta", tmp_path / "given")
    ours = Tokenizer.load(tmp_path / "given")
    AutoTokenizer.from_pretrained(tmp_path / "given").save_pretrained(tmp_path / "theirs")
    write_json(tmp_path / "theirs" / "config.json", {"model_type": "deberta"})
    again = Tokenizer.load(tmp_path / "theirs")
    assert again.frame == ours.frame
    assert (again.frame.cost(pair=True), again.frame.two_segments) == (3, True)


@pytest.mark.parametrize("model_type", ["roberta", "xlm-roberta", "modernbert"])
def test_a_file_without_rows_has_those_of_the_model_type(tmp_path: Path, model_type: str):
    make_tokenizer_folder(model_type, tmp_path)
    ours = Tokenizer.load(tmp_path)
    change_pipeline(tmp_path, post_processor=None)
    assert Tokenizer.load(tmp_path).frame == ours.frame


def test_a_normalizer_of_tokenizer_json_is_kept(tmp_path: Path):
    """transformers 5 leaves out the table of characters that a DeBERTa of version 4 was trained with."""
    make_tokenizer_folder("deberta-v2", tmp_path)
    backend = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    backend.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.NFKC()])
    backend.save(str(tmp_path / "tokenizer.json"))
    ours = Tokenizer.load(tmp_path)
    assert ours.encode("ＡＢＣ") == ours.encode("ABC")
    ours.save(tmp_path)
    assert their_ids(tmp_path) == ours.encode_batch(TEXTS)


@pytest.mark.parametrize(
    ("model_type", "option", "message"),
    [
        (
            "albert",
            {"do_lower_case": False},
            "disagree: do_lower_case is true in the first, false in the second",
        ),
        (
            "albert",
            {"keep_accents": True},
            "disagree: keep_accents is false in the first, true in the second",
        ),
        ("deberta-v2", {"do_lower_case": True}, "disagree: do_lower_case is false in the first, true in the"),
    ],
)
def test_options_that_contradict_tokenizer_json_are_refused(
    tmp_path: Path, model_type: str, option: dict[str, bool], message: str
):
    make_tokenizer_folder(model_type, tmp_path)
    change_json(tmp_path / CONFIG, **option)
    with pytest.raises(UserError, match=message):
        Tokenizer.load(tmp_path)


def test_a_class_and_a_vocabulary_that_do_not_belong_together_are_refused(tmp_path: Path):
    make_tokenizer_folder("camembert", tmp_path, slow=True)
    change_json(tmp_path / CONFIG, tokenizer_class="AlbertTokenizer")
    with pytest.raises(
        UserError, match=r"bpe.model: AlbertTokenizer does not read this file, but spiece.model"
    ):
        Tokenizer.load(tmp_path)
    change_json(tmp_path / CONFIG, tokenizer_class=None)
    write_json(tmp_path / "config.json", {"model_type": "roberta"})
    with pytest.raises(
        UserError, match=r"this model type does not read this file, but vocab.json and merges.txt"
    ):
        Tokenizer.load(tmp_path)
    change_json(tmp_path / CONFIG, tokenizer_class="PreTrainedTokenizerFast")
    with pytest.raises(UserError, match=r"which reads a tokenizer\.json, but there is none"):
        Tokenizer.load(tmp_path)


def test_a_vocabulary_that_nothing_explains_is_refused(tmp_path: Path):
    make_tokenizer_folder("roberta", tmp_path, slow=True)
    with pytest.raises(
        UserError, match=r"vocab.json: this file alone does not say how it is read\. Give its"
    ):
        Tokenizer.load(tmp_path / "vocab.json")
    (tmp_path / "config.json").unlink()
    (tmp_path / CONFIG).unlink()
    with pytest.raises(UserError, match=r"vocab.json: its folder has no config.json"):
        Tokenizer.load(tmp_path)


def test_a_name_that_is_no_text_is_refused(tmp_path: Path):
    make_tokenizer_folder("roberta", tmp_path)
    change_json(tmp_path / CONFIG, mask_token=5)
    with pytest.raises(UserError, match=r"mask_token is 5; expected a token's text, such as <mask>"):
        Tokenizer.load(tmp_path)
    change_json(tmp_path / CONFIG, mask_token="<gone>", tokenizer_class="PreTrainedTokenizerFast")
    backend = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    backend.post_processor = processors.ByteLevel()
    backend.save(str(tmp_path / "tokenizer.json"))
    assert Tokenizer.load(tmp_path).mask_token == "<gone>"  # registered by its name, as in transformers
