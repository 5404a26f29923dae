from dataclasses import replace

import pytest
import torch

from bertcli.model.task_models import (
    PooledModel,
    SequenceModel,
    SpanModel,
    TokenModel,
    VectorModel,
    build_task_model,
)

IDS_BT = torch.tensor([[2, 5, 6, 7, 3], [2, 8, 3, 0, 0]])
SEGMENTS_BT = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]])
MASK_BT = IDS_BT != 0


@pytest.mark.parametrize(
    ("head", "num_outputs", "kind", "shape"),
    [
        ("sequences", 4, SequenceModel, (2, 4)),
        ("choices", 1, SequenceModel, (2, 1)),
        ("tokens", 3, TokenModel, (2, 5, 3)),
        ("spans", 1, SpanModel, (2, 5, 2)),
        (None, 1, VectorModel, (2, 15)),
    ],
)
def test_each_head_has_its_model(odd, head, num_outputs, kind, shape):
    model = build_task_model(head, odd, num_outputs).eval()
    assert type(model) is kind
    assert model(IDS_BT, SEGMENTS_BT, MASK_BT).shape == shape
    if head is not None:
        output = model.get_submodule("qa_outputs" if head == "spans" else "classifier")
        assert torch.equal(output.get_parameter("bias"), torch.zeros(shape[-1]))
        assert 0 < output.get_parameter("weight").abs().max() <= 2 * odd.init_std


@pytest.mark.parametrize("head", ["sequences", "tokens", "spans"])
def test_padding_changes_nothing(odd, head):
    model = build_task_model(head, odd, 3).eval()
    padded = model(IDS_BT, SEGMENTS_BT, MASK_BT)[1]
    alone = model(IDS_BT[1:, :3], SEGMENTS_BT[1:, :3])[0]
    torch.testing.assert_close(padded if padded.ndim == 1 else padded[:3], alone)


@pytest.mark.parametrize("head", ["sequences", "tokens"])
def test_the_heads_dropout_is_its_own_where_there_is_one(odd, head):
    assert build_task_model(head, odd, 2).get_submodule("dropout").p == odd.dropout
    own = build_task_model(head, replace(odd, classifier_dropout=0.0), 2)
    assert own.get_submodule("dropout").p == 0.0
    assert own.body.embeddings.dropout.p == odd.dropout


def test_a_bare_encoder_with_and_without_its_pooler(odd):
    model = PooledModel(odd, pooler=True).eval()
    hidden_BTD = model(IDS_BT, SEGMENTS_BT, MASK_BT)
    assert hidden_BTD.shape == (2, 5, 15)
    assert model.pooler is not None
    assert model.pooler(hidden_BTD[:, 0]).shape == (2, 15)
    assert PooledModel(odd, pooler=False).pooler is None
