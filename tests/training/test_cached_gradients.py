"""One loss over all rows of a step, computed in micro-batches: the gradients are those of the whole batch."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from bertcli.batches.share import Share
from bertcli.config.task import TaskSettings
from bertcli.model.architecture import Architecture
from bertcli.model.task_models import VectorModel
from bertcli.tasks.sentence_embedding import SentenceEmbedding
from bertcli.tasks.supervised import Item, LabeledBatch
from bertcli.tokenizer.frame import Row
from bertcli.training.loop import LoopSettings, SecondPass, joined, train
from bertcli.training.optimizer import build_optimizer
from bertcli.training.scores import StepReport

PAIRS = 512
VOCABULARY = 200


def new_model(dropout: float = 0.0) -> VectorModel:
    torch.manual_seed(0)
    sizes = Architecture(VOCABULARY, 32, 2, 4, 64, 32, dropout=dropout, attention_dropout=dropout)
    return VectorModel(sizes)


def items(pairs: int, scored: bool) -> list[Item]:
    """Pairs of texts of 2 to 12 random tokens, some of them equal, or longer, in two windows; with scores
    from 0 to 4."""
    generator = torch.Generator().manual_seed(1)
    found = []
    for number in range(pairs):
        rows = []
        layout = [1, 1 + (number % 4 == 0)]
        for _ in range(sum(layout)):
            length = int(torch.randint(2, 13, (), generator=generator))
            ids = torch.randint(5, VOCABULARY if number % 9 else 7, (length,), generator=generator)
            rows.append(Row(ids.tolist(), length))
        score = float(torch.randint(5, (), generator=generator)) if scored else None
        found.append(Item(number, tuple(rows), score, layout=layout))
    return found


def new_task(scored: bool) -> SentenceEmbedding:
    settings = TaskSettings(
        type="sentence-embedding", text=["a", "b"], label="score" if scored else None, windows="mean"
    )
    return SentenceEmbedding(settings)


def gradients(model: nn.Module) -> list[torch.Tensor]:
    return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("scored", [False, True])
def test_the_gradients_of_512_pairs_are_those_of_the_plain_loss(scored: bool) -> None:
    model, task = new_model(), new_task(scored)
    whole = LabeledBatch(tuple(items(PAIRS, scored)), pad_id=0)
    expected = task.terms(model, whole)[""].loss / PAIRS
    expected.backward()
    plain = gradients(model)

    model.zero_grad()
    micro_batches = whole.micro_batches(Share(64))
    assert len(micro_batches) > 4
    second, cached = joined(task, micro_batches, lambda task, each: task.outputs(model, each.batch))
    assert isinstance(second, SecondPass)
    loss = 0.0
    for each in cached:
        part = second.terms(model, each.batch)[""].loss / PAIRS
        part.backward()
        loss += part.item()
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    largest = max(float(each.abs().max()) for each in plain)  # 40: tokens' parts of both signs are summed
    torch.testing.assert_close(gradients(model), plain, rtol=1e-5, atol=max(1e-5, 2e-6 * largest))


def run(micro_batch_size: int, dropout: float, steps: int = 3) -> list[StepReport]:
    settings = LoopSettings(
        seed=1, device=torch.device("cpu"), precision="fp32", max_grad_norm=1.0, rate=lambda step: 1e-3
    )
    model = new_model(dropout)
    batch = LabeledBatch(tuple(items(48, scored=False)), pad_id=0)
    optimizer = build_optimizer(model, (0.9, 0.999), 0.01)
    rows = [batch.micro_batches(Share(micro_batch_size)) for _ in range(steps)]
    return list(train(model, new_task(scored=False), rows, optimizer, settings, 0))


def test_cutting_a_batch_changes_nothing_but_rounding() -> None:
    whole = run(1000, dropout=0.0)
    for micro_batch_size in (32, 8):
        for a, b in zip(whole, run(micro_batch_size, dropout=0.0), strict=True):
            assert b.losses[""] == pytest.approx(a.losses[""], rel=1e-5)
            assert b.grad_norm == pytest.approx(a.grad_norm, rel=1e-4)


def test_the_second_pass_draws_the_dropout_of_the_first() -> None:
    model, task = new_model(dropout=0.3).train(), new_task(scored=False)
    outputs: list[list[torch.Tensor]] = []
    forward = model.forward

    def watched(*arguments: torch.Tensor) -> torch.Tensor:
        found = forward(*arguments)
        outputs[-1].append(found.detach())
        return found

    model.forward = watched  # pyright: ignore[reportAttributeAccessIssue]
    settings = LoopSettings(
        seed=1, device=torch.device("cpu"), precision="fp32", max_grad_norm=1.0, rate=lambda step: 0.0
    )
    batch = LabeledBatch(tuple(items(24, scored=False)), pad_id=0)
    outputs.append([])
    optimizer = build_optimizer(model, (0.9, 0.999), 0.0)
    list(train(model, task, [batch.micro_batches(Share(16))], optimizer, settings, 0))
    (seen,) = outputs
    half = len(seen) // 2
    assert half > 1
    for first, second in zip(seen[:half], seen[half:], strict=True):
        assert torch.equal(first, second)
    assert not torch.equal(seen[0], seen[1])
