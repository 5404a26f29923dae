import shutil
from pathlib import Path

import numpy as np
import pytest

from bertcli.families.bert import BERT
from bertcli.folders.convert import find_tf_checkpoint, is_cased, read_tf_checkpoint
from bertcli.folders.weights import hf_name, name_from_tensorflow
from bertcli.system.errors import UserError
from tests.folders.folders import WORDS, random_model
from tests.folders.tables import table
from tests.folders.tf_values import TF_CHECKPOINT, tf_shapes, tf_value


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(TF_CHECKPOINT, tmp_path / "tf")
    return tmp_path / "tf"


def test_every_variable_of_the_model_has_a_place_of_its_own():
    """The names that they get are those of a pretraining model, all of them and no other."""
    names = [name for name in tf_shapes() if "adam" not in name]
    assert sorted(str(name_from_tensorflow(BERT, name)) for name in names) == sorted(
        hf_name(BERT, name) for name in random_model().state_dict()
    )


@pytest.mark.parametrize(
    "name",
    [
        *("output_weights", "bert/encoder/layer_0/elsewhere/kernel", "bert/pooler/dense/scale"),
        *("bert/encoder/layer_0/attention/self/query/kernel/adam_m", "global_step", "beta1_power"),
    ],
)
def test_other_variables_are_unknown(name):
    assert name_from_tensorflow(BERT, name) is None


def test_what_belongs_to_the_optimizer_is_left_out(folder):
    files, optimizer = read_tf_checkpoint(folder / "bert_model.ckpt", None)
    moments = {name for name in tf_shapes() if "adam" in name}
    assert set(optimizer) == moments | {"global_step"}
    assert len(files.weights) == len(tf_shapes()) - len(moments)


def test_kernels_are_transposed_and_nothing_else_is(folder):
    weights = read_tf_checkpoint(folder / "bert_model.ckpt", None)[0].weights
    kernel = "bert/encoder/layer_1/intermediate/dense/kernel"
    assert np.array_equal(
        weights["bert.encoder.layer.1.intermediate.dense.weight"], tf_value(kernel, (15, 23)).T
    )
    for name, theirs in (
        ("cls/seq_relationship/output_weights", "cls.seq_relationship.weight"),
        ("bert/embeddings/word_embeddings", "bert.embeddings.word_embeddings.weight"),
    ):
        assert np.array_equal(weights[theirs], tf_value(name, tf_shapes()[name]))


def test_every_way_to_name_a_checkpoint(folder, tmp_path, monkeypatch):
    prefix = folder / "bert_model.ckpt"
    assert find_tf_checkpoint(folder) == prefix
    assert find_tf_checkpoint(prefix) == prefix
    assert find_tf_checkpoint(folder / "bert_model.ckpt.index") == prefix
    assert find_tf_checkpoint(tmp_path) is None
    monkeypatch.chdir(folder)
    assert find_tf_checkpoint(Path(".")) == Path("bert_model.ckpt")
    assert find_tf_checkpoint(tmp_path / "nowhere") is None


def test_several_checkpoints_in_one_folder(folder):
    shutil.copy(folder / "bert_model.ckpt.index", folder / "model.ckpt-900.index")
    with pytest.raises(
        UserError, match=r"several checkpoints \(bert_model\.ckpt, model\.ckpt-900\); name one"
    ):
        find_tf_checkpoint(folder)
    assert find_tf_checkpoint(folder / "model.ckpt-900") == folder / "model.ckpt-900"


def test_what_is_missing_beside_the_checkpoint(folder):
    (folder / "vocab.txt").unlink()
    (folder / "bert_config.json").unlink()
    with pytest.raises(UserError, match=r"bert_config\.json and vocab\.txt is missing beside the checkpoint"):
        read_tf_checkpoint(folder / "bert_model.ckpt", None)


def test_unknown_variables_are_all_named(folder):
    path = folder / "bert_model.ckpt.index"
    path.write_bytes(
        table({b"": b"\x08\x01", b"output_bias": b"", b"output_weights": b"", b"global_step": b""})
    )
    with pytest.raises(UserError, match=r"unknown variables: output_bias, output_weights\."):
        read_tf_checkpoint(folder / "bert_model.ckpt", None)


def test_case_is_decided_by_the_vocabulary_unless_given(folder):
    def lowercase(cased):
        return read_tf_checkpoint(folder / "bert_model.ckpt", cased)[0].tokenizer.lowercase

    assert lowercase(None)
    assert not lowercase(True)
    words = [*WORDS[:-1], "London"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    assert not lowercase(None)
    assert lowercase(False)


def test_special_tokens_do_not_make_a_vocabulary_cased():
    assert not is_cased(["[PAD]", "[UNK]", "[unused1]", "a", "##ß", "京", "5"])
    assert is_cased(["[PAD]", "a", "##É"])
