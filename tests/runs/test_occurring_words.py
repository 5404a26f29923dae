"""A model of the words that occur gives what the whole one gives, and leaves the other words as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bertcli.tasks.data import LabeledData, Split
from bertcli.runs.occurring_words import OccurringWords
from bertcli.model.task_models import TaskModel, build_task_model
from bertcli.tasks.supervised import LabeledBatch
from bertcli.tasks.registry import build_task
from tests.hf.folders import LABELS, ODD, SETTINGS, stirred, tiny_tokenizer
from tests.labeled_examples import draw_examples

TABLE = "bert.embeddings.word.weight"
KINDS = ["classification", "regression", "tokens", "questions", "choices"]


def whole(kind: str) -> tuple[TaskModel, LabeledData]:
    torch.manual_seed(0)
    labels = LABELS.get(kind, ())
    task = build_task(SETTINGS[kind], labels)
    model = build_task_model(
        SETTINGS[kind].type, replace(ODD, dropout=0.0, attention_dropout=0.0), len(labels)
    )
    train, dev = (draw_examples(kind, 6, seed) for seed in (1, 2))
    splits = (Split(each, task.encode(each, tiny_tokenizer())) for each in (train, dev))
    return stirred(model), LabeledData(task, *splits)


def loss_and_gradients(model: TaskModel, split: Split, task, pad_id: int) -> tuple[Tensor, dict[str, Tensor]]:
    model.zero_grad()
    batch = LabeledBatch(tuple(split.items), pad_id)
    rows = batch.rows
    loss = task.term(model(rows.ids_BT, rows.segments_BT, rows.mask_BT), batch).loss
    loss.backward()
    gradients = ((name, parameter.grad) for name, parameter in model.named_parameters())
    return loss.detach(), {name: gradient for name, gradient in gradients if gradient is not None}


@pytest.mark.parametrize("kind", KINDS)
def test_losses_and_gradients_are_those_of_the_whole_model(kind: str) -> None:
    model, data = whole(kind)
    want, want_gradients = loss_and_gradients(model, data.train, data.task, 0)
    words = OccurringWords(model, data, pad_id=0)
    words.narrow_model(model)
    narrow = words.narrow_data(data)
    got, got_gradients = loss_and_gradients(model, narrow.train, data.task, words.pad_id)
    assert len(words) < ODD.vocab_size
    assert words.left_out == (ODD.vocab_size - len(words)) * ODD.hidden
    assert torch.equal(got, want)
    of_words = want_gradients.pop(TABLE)
    assert torch.equal(got_gradients.pop(TABLE), words.narrow_weights({TABLE: of_words})[TABLE])
    assert torch.count_nonzero(of_words.any(1)) <= len(words)
    torch.testing.assert_close(got_gradients, want_gradients, rtol=0, atol=0)


def test_the_dev_data_are_among_them() -> None:
    model, data = whole("classification")
    assert data.dev is not None
    words = OccurringWords(model, data, pad_id=0)
    narrow = words.narrow_data(data).dev
    assert narrow is not None
    before = model.bert.embeddings.word.weight.detach().clone()
    words.narrow_model(model)
    for old, new in zip(data.dev.items, narrow.items, strict=True):
        assert torch.equal(
            before[list(old.rows[0].ids)], model.bert.embeddings.word.weight[list(new.rows[0].ids)]
        )


def test_wide_weights_hold_what_was_learned_and_leave_the_rest() -> None:
    model, data = whole("classification")
    assert data.dev is not None
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    words = OccurringWords(model, data, pad_id=0)
    words.narrow_model(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 1
    learned = model.state_dict()
    wide = words.widen_weights(learned)
    occurring = {i for split in (data.train, data.dev) for item in split.items for i in item.rows[0].ids} | {
        0
    }
    for i in range(ODD.vocab_size):
        assert torch.equal(wide[TABLE][i], before[TABLE][i] + (i in occurring))
    again = words.narrow_weights(wide)
    assert all(torch.equal(again[name], learned[name]) for name in learned)
    assert torch.equal(wide["bert.embeddings.position.weight"], before["bert.embeddings.position.weight"] + 1)


def test_frozen_embeddings_stay_frozen() -> None:
    model, data = whole("classification")
    model.bert.embeddings.word.weight.requires_grad_(False)
    OccurringWords(model, data, pad_id=0).narrow_model(model)
    assert not model.bert.embeddings.word.weight.requires_grad
