from dataclasses import replace

import pytest
import torch

from bertcli.model.task_models import PooledModel, SequenceModel, SpanModel, TokenModel, build_task_model

IDS_BT = torch.tensor([[2, 5, 6, 7, 3], [2, 8, 3, 0, 0]])
SEGMENTS_BT = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]])
MASK_BT = IDS_BT != 0


@pytest.mark.parametrize(
    ("task", "num_labels", "kind", "shape"),
    [
        ("classification", 4, SequenceModel, (2, 4)),
        ("regression", 0, SequenceModel, (2, 1)),
        ("multiple-choice", 0, SequenceModel, (2, 1)),
        ("token-classification", 3, TokenModel, (2, 5, 3)),
        ("question-answering", 0, SpanModel, (2, 5, 2)),
    ],
)
def test_each_task_has_its_head(odd, task, num_labels, kind, shape):
    model = build_task_model(task, odd, num_labels).eval()
    assert type(model) is kind
    assert model(IDS_BT, SEGMENTS_BT, MASK_BT).shape == shape
    head = model.get_submodule("qa_outputs" if task == "question-answering" else "classifier")
    assert torch.equal(head.get_parameter("bias"), torch.zeros(shape[-1]))
    assert 0 < head.get_parameter("weight").abs().max() <= 2 * odd.init_std


@pytest.mark.parametrize("task", ["classification", "token-classification", "question-answering"])
def test_padding_changes_nothing(odd, task):
    model = build_task_model(task, odd, 3).eval()
    padded = model(IDS_BT, SEGMENTS_BT, MASK_BT)[1]
    alone = model(IDS_BT[1:, :3], SEGMENTS_BT[1:, :3])[0]
    torch.testing.assert_close(padded if padded.ndim == 1 else padded[:3], alone)


@pytest.mark.parametrize("task", ["classification", "token-classification"])
def test_the_heads_dropout_is_its_own_where_there_is_one(odd, task):
    assert build_task_model(task, odd, 2).get_submodule("dropout").p == odd.dropout
    own = build_task_model(task, replace(odd, classifier_dropout=0.0), 2)
    assert own.get_submodule("dropout").p == 0.0
    assert own.body.embeddings.dropout.p == odd.dropout


def test_a_bare_encoder_with_and_without_its_pooler(odd):
    model = PooledModel(odd, pooler=True).eval()
    hidden_BTD = model(IDS_BT, SEGMENTS_BT, MASK_BT)
    assert hidden_BTD.shape == (2, 5, 15)
    assert model.pooler is not None
    assert model.pooler(hidden_BTD[:, 0]).shape == (2, 15)
    assert PooledModel(odd, pooler=False).pooler is None
