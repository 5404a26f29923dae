"""The vectors of a step are computed in parts of texts of similar length."""

from __future__ import annotations

import torch
from torch import Tensor

from bertcli.config.task import TaskSettings
from bertcli.model.architecture import Architecture
from bertcli.model.task_models import VectorModel
from bertcli.tasks.sentence_embedding import SentenceEmbedding
from bertcli.tasks.supervised import Item, LabeledBatch
from bertcli.tokenizer.frame import Row


def row(length: int) -> Row:
    return Row([5 + length % 7, *range(6, 5 + length)], length)


def test_a_question_is_not_padded_to_its_paragraph() -> None:
    torch.manual_seed(0)
    model = VectorModel(Architecture(900, 16, 1, 2, 32, 600)).eval()
    task = SentenceEmbedding(TaskSettings(type="sentence-embedding", text=["a", "b"]))
    lengths = [(8, 512), (11, 480), (5, 300), (9, 500), (7, 500)]
    batch = LabeledBatch(tuple(Item(n, (row(a), row(b)), None) for n, (a, b) in enumerate(lengths)), pad_id=0)
    shapes, plain = list[tuple[int, ...]](), model.forward

    def watched(ids_BT: Tensor, *more: Tensor) -> Tensor:
        shapes.append(tuple(ids_BT.shape))
        return plain(ids_BT, *more)

    expected = model(*batch.rows)
    model.forward = watched  # pyright: ignore[reportAttributeAccessIssue]
    torch.testing.assert_close(task.outputs(model, batch), expected)
    assert shapes == [(4, 512), (6, 300)]
