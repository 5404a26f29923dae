import json

import pytest
import torch
from safetensors.torch import load_file

from bertcli.folders.model_folder import load_encoder_folder
from tests.folders.folders import random_model, save_encoder, saved_model, saved_task, tiny_tokenizer


def test_the_body_and_the_pooler_of_a_pretraining_folder(tmp_path):
    whole = saved_model(tmp_path)
    model, tokenizer = load_encoder_folder(tmp_path)
    assert model.pooler is not None
    assert whole.pooler is not None
    assert torch.equal(model.pooler.dense.weight, whole.pooler.dense.weight)
    ids_BT = torch.tensor([tokenizer.encode("the cat sat")])
    got = model.eval()(ids_BT, torch.zeros_like(ids_BT))
    assert torch.equal(got, whole.body(ids_BT, torch.zeros_like(ids_BT)))


@pytest.mark.parametrize(
    ("kind", "pooler"), [("classification", True), ("tokens", False), ("questions", False)]
)
def test_the_body_of_a_fine_tuned_folder(tmp_path, kind, pooler):
    whole = saved_task(tmp_path, kind)
    model, _ = load_encoder_folder(tmp_path)
    assert (model.pooler is not None) == pooler
    assert torch.equal(model.body.embeddings.word.weight, whole.body.embeddings.word.weight)


def test_a_bare_encoder_is_saved_under_bare_names(tmp_path):
    saved_model(tmp_path / "whole")
    model, _ = load_encoder_folder(tmp_path / "whole")
    save_encoder(tmp_path / "bare", model, tiny_tokenizer())
    assert json.loads((tmp_path / "bare" / "config.json").read_text())["architectures"] == ["BertModel"]
    names = set(load_file(tmp_path / "bare" / "model.safetensors"))
    assert {"embeddings.LayerNorm.bias", "encoder.layer.1.output.dense.bias", "pooler.dense.weight"} <= names
    again, _ = load_encoder_folder(tmp_path / "bare")
    assert again.pooler is not None
    name = "encoder.layers.1.attention.key.weight"
    assert torch.equal(again.body.get_parameter(name), random_model().body.get_parameter(name))
