"""The loop: how a batch is cut changes nothing, and what is not finite never reaches the weights."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from bertcli.batches.share import MicroBatch, Share
from bertcli.batches.stream import BatchStream
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import PretrainingModel
from bertcli.objectives.masked_language import MaskedLanguage
from bertcli.objectives.registry import NEXT_SENTENCE
from bertcli.system.hardware import Precision
from bertcli.training.loop import LoopSettings, train
from bertcli.training.optimizer import LossScale, build_optimizer
from bertcli.training.scores import StepReport
from bertcli.training.wrapping import compile_layers

CPU = torch.device("cpu")


def new_model(dropout: float = 0.0) -> PretrainingModel:
    torch.manual_seed(0)
    sizes = Architecture(400, 32, 2, 4, 64, 32, dropout=dropout, attention_dropout=dropout)
    return PretrainingModel(sizes)


def settings(precision: Precision = "fp32") -> LoopSettings:
    return LoopSettings(
        seed=1,
        device=CPU,
        precision=precision,
        max_grad_norm=1.0,
        rate=lambda step: 1e-3 * min(1, (step + 1) / 5),
    )


def cut(stream: BatchStream, steps: int, micro_batch_size: int = 64) -> list[list[MicroBatch]]:
    return [stream.micro_batches(step, Share(micro_batch_size)) for step in range(steps)]


def run(
    stream: BatchStream, micro_batch_size: int, steps: int, dropout: float = 0.0
) -> tuple[list[StepReport], PretrainingModel]:
    model = new_model(dropout)
    optimizer = build_optimizer(model, (0.9, 0.999), 0.01)
    loop = train(
        model, MaskedLanguage(NEXT_SENTENCE), cut(stream, steps, micro_batch_size), optimizer, settings(), 0
    )
    return list(loop), model


def test_cutting_a_batch_changes_nothing_but_rounding(stream: BatchStream) -> None:
    whole, _ = run(stream, 64, steps=20)
    for micro_batch_size in (16, 8):
        cut, _ = run(stream, micro_batch_size, steps=20)
        for a, b in zip(whole, cut, strict=True):
            assert a.loss == pytest.approx(b.loss, rel=1e-5)
            assert a.grad_norm == pytest.approx(b.grad_norm, rel=1e-5)
            assert a.tokens == b.tokens


def test_the_same_run_gives_the_same_bits_dropout_on(stream: BatchStream) -> None:
    first, first_model = run(stream, 16, steps=3, dropout=0.1)
    second, second_model = run(stream, 16, steps=3, dropout=0.1)
    assert first == second
    for a, b in zip(first_model.parameters(), second_model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_dropout_differs_between_micro_batches_and_steps(stream: BatchStream) -> None:
    with_dropout, _ = run(stream, 64, steps=2, dropout=0.1)
    other_cut, _ = run(stream, 32, steps=2, dropout=0.1)
    assert with_dropout[0].loss != pytest.approx(other_cut[0].loss, rel=1e-5)


class SometimesNan(MaskedLanguage):
    """Spoils the loss, or only its gradient, of chosen calls."""

    def __init__(self, bad_calls: set[int], in_gradient: bool):
        super().__init__(NEXT_SENTENCE)
        self.bad_calls, self.in_gradient, self.calls = bad_calls, in_gradient, -1

    def terms(self, model, batch):
        self.calls += 1
        terms = super().terms(model, batch)
        if self.calls in self.bad_calls:
            loss = terms["mlm"].loss
            spoilt = loss + (loss * 0).sqrt() if self.in_gradient else loss * float("nan")
            terms["mlm"] = type(terms["mlm"])(spoilt, terms["mlm"].correct)
        return terms


@pytest.mark.parametrize("in_gradient", [False, True])
def test_a_step_that_is_not_finite_never_reaches_the_weights(stream: BatchStream, in_gradient: bool) -> None:
    model = new_model()
    optimizer = build_optimizer(model, (0.9, 0.999), 0.01)
    task = SometimesNan({1}, in_gradient)
    reports = train(model, task, cut(stream, 3), optimizer, settings(), 0)

    assert not next(reports).skipped
    before = [parameter.clone() for parameter in model.parameters()]
    moments = [state["exp_avg"].clone() for state in optimizer.state.values()]
    assert next(reports).skipped
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert all(torch.equal(a, s["exp_avg"]) for a, s in zip(moments, optimizer.state.values(), strict=True))
    assert not next(reports).skipped
    assert not torch.equal(before[0], next(model.parameters()))


@pytest.mark.filterwarnings("default")  # torch warns of itself while it traces
def test_compiled_it_gives_the_same_losses(stream: BatchStream, monkeypatch: pytest.MonkeyPatch) -> None:
    exact, _ = run(stream, 16, steps=3)
    model = new_model()
    optimizer = build_optimizer(model, (0.9, 0.999), 0.01)
    in_one_piece = partial(torch.compile, backend="aot_eager", fullgraph=True)  # all but the generated code
    monkeypatch.setattr(torch, "compile", in_one_piece)
    compile_layers(model)
    steps = cut(stream, 3, micro_batch_size=16)
    task = MaskedLanguage(NEXT_SENTENCE, compiled=True)
    reports = list(train(model, task, steps, optimizer, settings(), 0))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0
    for ours, theirs in zip(reports, exact, strict=True):
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-5)
        assert ours.grad_norm == pytest.approx(theirs.grad_norm, rel=1e-4)


def test_fp16_with_its_loss_scale_trains_as_fp32_does(stream: BatchStream) -> None:
    exact, _ = run(stream, 64, steps=10)
    model = new_model()
    optimizer = build_optimizer(model, (0.9, 0.999), 0.01)
    reports = list(
        train(model, MaskedLanguage(NEXT_SENTENCE), cut(stream, 10), optimizer, settings("fp16"), 0)
    )
    for ours, theirs in zip(reports, exact, strict=True):
        assert not ours.skipped
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-3)
        assert ours.grad_norm == pytest.approx(theirs.grad_norm, rel=1e-2)
    assert reports[-1].loss_scale == LossScale(steps=10)
    assert exact[-1].loss_scale is None


def test_a_loss_scale_that_overflows_fp16_is_halved_until_it_does_not(stream: BatchStream) -> None:
    model = new_model()
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = build_optimizer(model, (0.9, 0.999), 0.01)
    too_high = LossScale(2.0**24)
    steps = cut(stream, 20)
    reports = train(model, MaskedLanguage(NEXT_SENTENCE), steps, optimizer, settings("fp16"), 0, too_high)
    report, skips = next(reports), 0
    while report.skipped:
        assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
        report, skips = next(reports), skips + 1
    assert skips
    assert report.loss_scale == LossScale(too_high.factor / 2**skips, steps=1)


def test_the_gradient_is_clipped_and_its_norm_reported_unclipped(stream: BatchStream) -> None:
    model = new_model()
    with torch.no_grad():
        model.mlm_head.bias.add_(torch.linspace(-30, 30, 400))  # a bad start: large gradients
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    loop = LoopSettings(1, CPU, "fp32", max_grad_norm=0.5, rate=lambda step: 1.0)
    report = next(train(model, MaskedLanguage(NEXT_SENTENCE), cut(stream, 1), optimizer, loop, 0))
    pairs = zip(before, model.parameters(), strict=True)
    moved = torch.stack([(a - b.detach()).norm() for a, b in pairs]).norm()
    assert report.grad_norm > 0.5
    assert float(moved) == pytest.approx(0.5, rel=1e-3)
