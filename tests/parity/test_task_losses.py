"""The losses of tasks against those of transformers' heads, from the same weights and rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn

transformers = pytest.importorskip("transformers")

from bertcli.config.task import TaskSettings  # noqa: E402
from bertcli.families.bert import BERT  # noqa: E402
from bertcli.folders.weights import hf_name  # noqa: E402
from bertcli.tasks.examples import Answer, ChoiceExample, QuestionExample, TaggedExample  # noqa: E402
from bertcli.tasks.multiple_choice import MultipleChoice  # noqa: E402
from bertcli.tasks.question_answering import QuestionAnswering  # noqa: E402
from bertcli.tasks.supervised import LabeledBatch, LabeledTask  # noqa: E402
from bertcli.tasks.token_classification import TokenClassification  # noqa: E402
from tests.folders.folders import tiny_tokenizer  # noqa: E402
from tests.parity.transformers_side import odd_config  # noqa: E402
from tests.tasks.contract import batch, task_model  # noqa: E402

LABELS = ("O", "B-x", "I-x")


def of_transformers(name: str, ours: nn.Module) -> nn.Module:
    """The model of that name, with our weights."""
    config = odd_config(num_labels=len(LABELS) if name == "BertForTokenClassification" else 2)
    theirs = getattr(transformers, name)(config).eval()
    kind = next(kind for kind in BERT.heads if BERT.classes[kind] == name)
    theirs.load_state_dict({hf_name(BERT, key, kind): value for key, value in ours.state_dict().items()})
    return theirs


def our_loss(task: LabeledTask, model: nn.Module, whole: LabeledBatch) -> Tensor:
    return task.terms(model, whole)[""].loss / task.counts(whole)[""]


def inputs(whole: LabeledBatch) -> dict[str, Tensor]:
    rows = whole.rows
    mask_BT = torch.ones_like(rows.ids_BT) if rows.mask_BT is None else rows.mask_BT.long()
    return {"input_ids": rows.ids_BT, "token_type_ids": rows.segments_BT, "attention_mask": mask_BT}


def encoded(task: LabeledTask, examples: Sequence[Any]) -> LabeledBatch:
    return batch(task.encode(examples, tiny_tokenizer()))


def test_token_classification():
    task = TokenClassification(TaskSettings(type="token-classification", max_length=16), LABELS)
    sentences = [("the", "cats", "sat"), ("a", "dog", "ran", "dogs", "on")]
    examples = [
        TaggedExample(
            "here", {}, (" ".join(words),), words, ((0, 0),) * len(words), LABELS[:2] * 2 + LABELS[2:]
        )
        for words in sentences
    ]
    whole = encoded(task, examples)
    labels_BT = torch.full_like(whole.rows.ids_BT, -100)
    for row, item in enumerate(whole.items):
        labels_BT[row, item.layout.positions] = torch.tensor(item.target)
    ours = task_model("tokens", len(LABELS))
    theirs = of_transformers("BertForTokenClassification", ours)(**inputs(whole), labels=labels_BT)
    torch.testing.assert_close(our_loss(task, ours, whole), theirs.loss, rtol=1e-5, atol=1e-5)


def test_question_answering():
    """Of rows of one length: at padding transformers lets an answer stand, which we do not."""
    task = QuestionAnswering(TaskSettings(type="question-answering", max_length=16))
    examples = [
        QuestionExample("here", {}, ("was it", "the cat sat"), "1", (Answer("cat sat", 4),)),
        QuestionExample("here", {}, ("was he", "the dog ran"), "2", ()),
    ]
    whole = encoded(task, examples)
    starts_B, ends_B = torch.tensor([item.target for item in whole.items]).unbind(1)
    ours = task_model("spans")
    theirs = of_transformers("BertForQuestionAnswering", ours)(
        **inputs(whole), start_positions=starts_B, end_positions=ends_B
    )
    torch.testing.assert_close(our_loss(task, ours, whole), theirs.loss, rtol=1e-5, atol=1e-5)


def test_multiple_choice():
    """Of as many choices each: transformers knows no other."""
    task = MultipleChoice(TaskSettings(type="multiple-choice", text="text", choices="choices", max_length=16))
    examples = [
        ChoiceExample("here", {}, ("the cat", "was it"), ("on the mat", "a dog", "dark"), 2),
        ChoiceExample("here", {}, ("the dog ran",), ("he", "she", "it"), 0),
    ]
    whole = encoded(task, examples)
    grouped = {name: value.view(2, 3, -1) for name, value in inputs(whole).items()}
    ours = task_model("choices")
    theirs = of_transformers("BertForMultipleChoice", ours)(**grouped, labels=torch.tensor([2, 0]))
    torch.testing.assert_close(our_loss(task, ours, whole), theirs.loss, rtol=1e-5, atol=1e-5)
