import pytest
import torch

from bertcli.families.bert import BERT
from bertcli.folders.weights import hf_name, is_harmless, modern_name
from bertcli.model.pretraining import PretrainingModel
from tests.folders.folders import ODD


def test_every_parameter_has_its_own_name_in_a_hugging_face_folder():
    with torch.device("meta"):
        ours = list(PretrainingModel(ODD).state_dict())
    theirs = [hf_name(BERT, name) for name in ours]
    assert len(set(theirs)) == len(ours)
    assert "bert.encoder.layer.1.attention.output.LayerNorm.weight" in theirs


def test_a_name_outside_the_table_has_none():
    with pytest.raises(KeyError):
        hf_name(BERT, "body.encoder.layers.0.attention.elsewhere.weight")


@pytest.mark.parametrize(
    ("spelling", "modern"),
    [
        ("bert.embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.weight"),
        ("encoder.layer.0.output.LayerNorm.beta", "bert.encoder.layer.0.output.LayerNorm.bias"),
        ("pooler.dense.weight", "bert.pooler.dense.weight"),
        ("cls.predictions.decoder.bias", "cls.predictions.bias"),
        ("cls.predictions.bias", "cls.predictions.bias"),
        ("classifier.weight", "classifier.weight"),
    ],
)
def test_old_and_bare_spellings(spelling, modern):
    assert modern_name(BERT, spelling) == modern


@pytest.mark.parametrize(
    ("name", "harmless"),
    [
        ("classifier.bias", True),
        ("qa_outputs.weight", True),
        ("bert.embeddings.position_ids", True),
        ("bert.pooler.dense.weight", True),
        ("cls.seq_relationship.weight", True),
        ("bert.encoder.layer.0.crossattention.self.query.weight", False),
        ("cls.predictions.transform.dense.scale", False),
    ],
)
def test_what_may_be_left_aside(name, harmless):
    assert is_harmless(BERT, name) == harmless
