"""Folders that are no model of ours to read, each refused in words."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from bertcli.folders.model_folder import load_model_folder
from bertcli.system.errors import UserError
from tests.folders.folders import change_config, rewrite, saved_model, without


@pytest.fixture
def folder(tmp_path):
    saved_model(tmp_path / "model")
    return tmp_path / "model"


def test_every_weight_that_does_not_fit_stands_in_one_message(folder):
    def spoil(weights):
        weights["bert.encoder.layer.1.output.dense.weight"] = torch.zeros(23, 15)
        weights["bert.encoder.layer.2.output.dense.bias"] = torch.zeros(15)
        return without("bert.embeddings.position_embeddings", "cls.predictions.transform.dense.bias")(weights)

    rewrite(folder, spoil)
    with pytest.raises(UserError) as caught:
        load_model_folder(folder)
    assert str(caught.value).split("\n  ") == [
        f"{folder / 'model.safetensors'}: 4 weights do not fit this BERT:",
        "missing: bert.embeddings.position_embeddings.weight (19, 15)",
        "missing: cls.predictions.transform.dense.bias (15,)",
        "shape: bert.encoder.layer.1.output.dense.weight is (23, 15), config.json asks for (15, 23)",
        "unknown: bert.encoder.layer.2.output.dense.bias (15,)",
    ]


def test_an_untied_decoder_is_refused(folder):
    decoder = {"cls.predictions.decoder.weight": torch.zeros(37, 15)}
    rewrite(folder, lambda weights: weights | decoder)
    with pytest.raises(
        UserError, match=r"cls\.predictions\.decoder\.weight differs from the word embeddings"
    ):
        load_model_folder(folder)


def test_two_different_biases_are_refused(folder):
    rewrite(folder, lambda weights: weights | {"cls.predictions.decoder.bias": torch.zeros(37)})
    with pytest.raises(UserError, match=r"holds cls\.predictions\.bias twice, with different values"):
        load_model_folder(folder)


def test_a_vocabulary_larger_than_the_model_is_refused(folder):
    lines = (folder / "vocab.txt").read_text() + "extra\n"
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.txt").write_text(lines)
    with pytest.raises(UserError, match="the vocabulary has 38 tokens, but the model only 37"):
        load_model_folder(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b"\x08\0\0\0\0\0\0\0not json"),
        ("model.safetensors", b""),
        ("pytorch_model.bin", b"not a pickle"),
        ("pytorch_model.bin", b""),
    ],
)
def test_damaged_weights_are_named(folder, name, content):
    (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(content)
    with pytest.raises(UserError, match=f"{name}: cannot be read as weights: .*Copy or download it again"):
        load_model_folder(folder)


def test_truncated_weights_are_named(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UserError, match="cannot be read as weights"):
        load_model_folder(folder)


class _Code:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickle_that_would_run_code_is_refused_by_name_and_runs_nothing(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    trace = tmp_path / "code was run"
    torch.save({"bert.embeddings.LayerNorm.bias": _Code(trace)}, folder / "pytorch_model.bin")
    with pytest.raises(
        UserError, match=r"would run code when loaded \(.*getattr\) and was refused: a weight"
    ):
        load_model_folder(folder)
    assert not trace.exists()
    torch.load(folder / "pytorch_model.bin", weights_only=False)
    assert trace.exists()


def test_a_file_of_something_else_is_named(folder):
    (folder / "model.safetensors").unlink()
    torch.save([1, 2], folder / "pytorch_model.bin")
    with pytest.raises(UserError, match="expected names and tensors, found list"):
        load_model_folder(folder)


def test_a_folder_without_its_vocabulary_is_refused(folder):
    shutil.copy(folder / "vocab.txt", folder / "elsewhere.txt")
    (folder / "vocab.txt").unlink()
    (folder / "tokenizer.json").unlink()
    with pytest.raises(UserError, match=r"missing: a vocabulary \(one of tokenizer.json, vocab.txt"):
        load_model_folder(folder)


def test_tensors_that_are_not_plain_numbers_are_named(folder):
    odd = {"a": torch.zeros(1).expand(10**12), "b": torch.zeros(2, dtype=torch.complex64)}
    weights = load_file(folder / "model.safetensors") | odd
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    with pytest.raises(
        UserError, match=r"tensors of an unsupported kind .*: a, b\. Save the model in float32"
    ):
        load_model_folder(folder)


def test_nothing_is_made_of_sizes_that_the_weights_do_not_have(folder):
    """A new pooler of this size would be 1 TB."""
    change_config(folder, hidden_size=5 * 10**5)
    rewrite(folder, without("bert.pooler", "cls.seq_relationship"))
    with pytest.raises(UserError, match=r"weights do not fit this BERT"):
        load_model_folder(folder, pairs=True)


@pytest.mark.parametrize("outside", ["../../{0}", "{1}/{0}", "..\\..\\{0}", "a/../../{0}"])
def test_weights_outside_of_the_folder_are_refused(folder, tmp_path, outside):
    (folder / "model.safetensors").rename(tmp_path / "other.safetensors")
    name = outside.format("other.safetensors", tmp_path)
    index = {"weight_map": {"bert.pooler.dense.bias": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(UserError, match=r"weight_map lists files outside of its folder: .*other\.safetens"):
        load_model_folder(folder)


def test_weights_behind_a_link_are_read(folder, tmp_path):
    """The hub's cache is made of them."""
    (folder / "model.safetensors").rename(tmp_path / "blob")
    (folder / "part.safetensors").symlink_to("../blob")
    files = dict.fromkeys(load_file(tmp_path / "blob"), "part.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    assert load_model_folder(folder).report.new == ()
