"""A converted TensorFlow checkpoint against transformers, filled from the same values by another rule."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

from bertcli.folders.convert import convert  # noqa: E402
from bertcli.folders.model_folder import load_model_folder  # noqa: E402
from tests.folders.tf_values import TF_CHECKPOINT, tf_shapes, tf_value  # noqa: E402
from tests.parity.outputs import assert_equal_at_real_positions, batch, our_outputs  # noqa: E402
from tests.parity.transformers_side import their_outputs  # noqa: E402


def tensorflow_name(name: str) -> str:
    """Of a parameter of transformers' `BertForPreTraining`, which took its names from Google's."""
    heads = {
        "cls.predictions.bias": "cls/predictions/output_bias",
        "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
        "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
    }
    if name in heads:
        return heads[name]
    path = name.replace("layer.", "layer_").replace(".", "/")
    if "LayerNorm" in path:
        return path.replace("weight", "gamma").replace("bias", "beta")
    if "_embeddings/" in path:
        return path.removesuffix("/weight")
    return path.replace("weight", "kernel")


@pytest.fixture
def folder(tmp_path):
    convert(TF_CHECKPOINT, tmp_path / "converted", None)
    return tmp_path / "converted"


@pytest.mark.parametrize("padded", [False, True])
def test_the_converted_model_computes_what_the_checkpoint_holds(folder, padded):
    theirs = transformers.BertForPreTraining._from_config(
        transformers.BertConfig.from_json_file(TF_CHECKPOINT / "bert_config.json"),
        attn_implementation="eager",
    ).eval()
    shapes = tf_shapes()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            variable = tensorflow_name(name)
            values = torch.from_numpy(tf_value(variable, shapes[variable]))
            parameter.copy_(values.T if variable.endswith("kernel") else values)
    inputs = batch(padded)
    got = our_outputs(load_model_folder(folder).model.eval(), inputs)
    assert_equal_at_real_positions(got, their_outputs(theirs, inputs), inputs[2])


def test_transformers_loads_the_converted_folder_whole(folder):
    theirs, info = transformers.BertForPreTraining.from_pretrained(
        folder, attn_implementation="eager", output_loading_info=True
    )
    assert not any(info.values()), info
    inputs = batch(padded=True)
    got = our_outputs(load_model_folder(folder).model.eval(), inputs)
    assert_equal_at_real_positions(got, their_outputs(theirs.eval(), inputs), inputs[2])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    assert tokenizer("The cat sat!")["input_ids"] == [2, 5, 7, 9, 23, 3]
