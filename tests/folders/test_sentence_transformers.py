import json

import pytest

from bertcli.folders.sentence_transformers import SentencePooling, read_pooling
from bertcli.system.errors import UserError
from bertcli.tokenizer.wordpiece import Normalization
from tests.folders.folders import WORDS, tiny_tokenizer
from tests.wordpieces import wordpiece

MEAN = {"word_embedding_dimension": 15, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}


@pytest.fixture
def folder(tmp_path):
    """A function that writes the files of a sentence-transformers folder."""

    def write(pooling, kinds=("Transformer", "Pooling"), **files):
        modules = [
            {"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"some.package.{kind}"}
            for i, kind in enumerate(kinds)
        ]
        contents = {"modules.json": modules, "1_Pooling/config.json": pooling}
        for name, content in (contents | {f"{name}.json": files[name] for name in files}).items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(json.dumps(content))
        tiny_tokenizer().save(tmp_path)
        sizes = {"vocab_size": 9, "hidden_size": 15, "num_hidden_layers": 1, "num_attention_heads": 3}
        sizes |= {"intermediate_size": 4, "max_position_embeddings": 514, "pad_token_id": 1}
        (tmp_path / "config.json").write_text(json.dumps({"model_type": "roberta", **sizes}))
        return tmp_path

    return write


def test_a_folder_of_another_kind_has_none(tmp_path):
    assert read_pooling(tmp_path) is None


@pytest.mark.parametrize(
    ("pooling", "mode"),
    [
        (MEAN, "mean"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_max_tokens": True}, "max"),
        ({"word_embedding_dimension": 15}, "mean"),
        ({"embedding_dimension": 15, "pooling_mode": "cls", "include_prompt": True}, "cls"),
        ({"pooling_mode": ["max"]}, "max"),
    ],
)
def test_every_mode_in_the_old_and_the_new_spelling(folder, pooling, mode):
    assert read_pooling(folder(pooling)) == SentencePooling(mode, normalize=False, max_length=512)


def test_a_length_beyond_the_positions_is_that_of_the_positions(folder):
    path = folder(MEAN, sentence_bert_config={"max_seq_length": 514})
    assert read_pooling(path) == SentencePooling("mean", normalize=False, max_length=512)


def test_without_a_length_the_tokenizers_counts(folder):
    path = folder(MEAN)
    keys = json.loads((path / "tokenizer_config.json").read_text()) | {"model_max_length": 128}
    (path / "tokenizer_config.json").write_text(json.dumps(keys))
    assert read_pooling(path) == SentencePooling("mean", normalize=False, max_length=128)


def test_normalization_and_length(folder):
    path = folder(
        MEAN,
        kinds=("Transformer", "Pooling", "Normalize"),
        sentence_bert_config={"max_seq_length": 256, "do_lower_case": True},
        config_sentence_transformers={"prompts": {"query": "q: "}, "default_prompt_name": None},
    )
    assert read_pooling(path) == SentencePooling("mean", normalize=True, max_length=256)


@pytest.mark.parametrize(
    ("pooling", "message"),
    [
        (
            {"pooling_mode_weightedmean_tokens": True},
            "pools by weightedmean; bertcli pools by one of mean, cls",
        ),
        ({"pooling_mode_lasttoken": True}, "pools by lasttoken"),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, "pools by mean_sqrt_len_tokens"),
        ({"pooling_mode": "lasttoken"}, "pools by lasttoken"),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}, "pools by mean and cls"),
        ({"pooling_mode": ["mean", "max"]}, "pools by mean and max"),
    ],
)
def test_other_modes_are_refused_by_name(folder, pooling, message):
    with pytest.raises(UserError, match=rf"1_Pooling/config\.json: {message}"):
        read_pooling(folder(pooling))


@pytest.mark.parametrize(
    "kinds",
    [
        ("Transformer", "Pooling", "Dense"),
        ("Transformer", "Pooling", "Dense", "Normalize"),
        ("WordEmbeddings", "Pooling"),
        ("Transformer",),
    ],
)
def test_other_modules_are_refused_by_name(folder, kinds):
    with pytest.raises(
        UserError, match=f"modules.json: the modules are {', '.join(kinds)}; bertcli supports"
    ):
        read_pooling(folder(MEAN, kinds=kinds))


def test_damaged_files(folder):
    path = folder(MEAN)
    (path / "modules.json").write_text('["Transformer"]')
    with pytest.raises(UserError, match=r"modules\.json: expected a list of modules"):
        read_pooling(path)
    path = folder(MEAN, sentence_bert_config={"max_seq_length": "long"})
    with pytest.raises(UserError, match="max_seq_length: 'long' is not a number of tokens above 2"):
        read_pooling(path)


def test_a_prompt_before_every_text_is_refused(folder):
    path = folder(MEAN, config_sentence_transformers={"default_prompt_name": "query"})
    with pytest.raises(UserError, match="puts the prompt 'query' before every text, which bertcli does not"):
        read_pooling(path)


def test_lower_case_that_the_tokenizer_does_not_make_is_refused(folder):
    path = folder(MEAN, sentence_bert_config={"do_lower_case": True})
    wordpiece(WORDS, Normalization(lowercase=False)).save(path)
    with pytest.raises(
        UserError, match="do_lower_case asks for lower case, but the folder's tokenizer keeps"
    ):
        read_pooling(path)
