from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from bertcli.advice.bench.probe import probe
from bertcli.advice.bench.timing import (
    StepTimes,
    matmul_rate,
    synthetic_steps,
    take_steps,
    time_in_turn,
    time_steps,
    training_to_time,
)
from bertcli.batches.share import Share
from bertcli.config.run import decided_loop
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import PretrainingModel
from bertcli.objectives.masked_language import MaskedLanguage
from bertcli.objectives.registry import NEXT_SENTENCE
from bertcli.training.scores import StepReport

CPU = torch.device("cpu")
SMALL = Architecture(100, 32, 2, 2, 64, 32)
TRAINING = decided_loop(
    training_to_time(batch_size=8, micro_batch_size=4, device="cpu", precision="fp32", compile=False), {}
)


def reports(clock: list[float], seconds: list[float]) -> Iterator[StepReport]:
    """Steps that take so long by a clock that only they move."""
    report = StepReport({}, {}, 10, step=1, learning_rate=0.0, grad_norm=0.0, skipped=False)
    for number, each in enumerate(seconds):
        clock[0] += each
        yield replace(report, tokens=100 * (number + 1))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    time = [0.0]
    monkeypatch.setattr("bertcli.advice.bench.timing.now", lambda device: time[0])
    return time


def test_warm_up_is_left_out(clock: list[float]) -> None:
    times = time_steps(reports(clock, [9, 9, 9, 1, 2, 4, 9]), CPU, steps=3)
    assert list(times.seconds) == [1, 2, 4]
    assert list(times.tokens) == [400, 500, 600]
    assert times.median == 2
    assert times.quartiles == (1.5, 3)
    assert times.tokens_per_second == 250


def test_no_step_begins_after_the_time(clock: list[float]) -> None:
    assert len(time_steps(reports(clock, [1] * 99), CPU, steps=50, seconds=10).seconds) == 7
    clock[0] = 0
    assert len(time_steps(reports(clock, [60] * 99), CPU, steps=50, seconds=10).seconds) == 1


def test_sides_take_turns(clock: list[float]) -> None:
    one, two = (reports(clock, [9, 9, 9, *seconds]) for seconds in ([1, 2], [10, 20]))
    times = time_in_turn([one, two], 2, lambda: clock[0])
    assert [list(each.seconds) for each in times] == [[1, 2], [10, 20]]
    assert [list(each.tokens) for each in times] == [[400, 500], [400, 500]]
    assert clock[0] == 6 * 9 + 33


def test_one_step_has_no_spread() -> None:
    assert StepTimes([3.0], [5]).quartiles == (3.0, 3.0)


def test_synthetic_steps_are_full_rows_with_masks_and_both_labels() -> None:
    steps = synthetic_steps(100, batch_size=10, length=20, share=Share(4))
    batches = [micro_batch.batch for micro_batch in next(steps)]
    assert [batch.num_rows for batch in batches] == [4, 4, 2]
    for batch in batches:
        assert batch.mask_BT is None
        assert batch.num_tokens == 20 * batch.num_rows
        assert batch.num_masked == 3 * batch.num_rows
        assert len(torch.unique(batch.masked_M)) == batch.num_masked
        assert sorted(set(batch.labels_B.tolist())) == [0, 1]
        assert batch.ids_BT.min() >= 5


def test_steps_are_those_of_the_training_loop() -> None:
    model = PretrainingModel(SMALL)
    before = model.mlm_head.dense.weight.clone()
    report = next(
        take_steps(model, MaskedLanguage(NEXT_SENTENCE), synthetic_steps(100, 8, 16, Share(4)), TRAINING)
    )
    assert report.step == 1
    assert report.tokens == 8 * 16
    assert report.learning_rate == TRAINING.learning_rate
    assert not torch.equal(before, model.mlm_head.dense.weight)


def test_a_matmul_rate_is_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertcli.advice.bench.timing.SIZES", {"cpu": (64,)})
    assert matmul_rate(CPU, "fp32", seconds=0.01) > 1e6


@pytest.mark.parametrize(("row_flops", "sizes"), [(1.0, [(8, 4)]), (1e18, [(1, 1), (2, 1)])])
def test_a_probe_takes_whole_steps_or_where_they_are_long_smaller_ones(
    monkeypatch: pytest.MonkeyPatch, row_flops: float, sizes: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr("bertcli.advice.bench.probe.matmul_rate", lambda *args, **kwargs: 1e12)
    monkeypatch.setattr("bertcli.advice.bench.probe.training_flops", lambda *sizes: row_flops / 16)
    monkeypatch.setattr("bertcli.advice.bench.probe.decide_here", lambda plan: TRAINING)
    asked = []

    def make_steps(batch_size: int, rows: int):
        asked.append((batch_size, rows))
        return synthetic_steps(100, batch_size, 16, Share(rows))

    plan: Any = SimpleNamespace(
        architecture=SMALL,
        length=16,
        predicted=0.15,
        task=MaskedLanguage(NEXT_SENTENCE),
        build=lambda: PretrainingModel(SMALL),
        make_steps=make_steps,
    )
    seen = probe(plan, seconds=0.2)
    assert asked == sizes
    assert seen.tokens == 8 * 16
    assert seen.seconds > 0
    assert (seen.peak is not None) == (sizes == [(8, 4)])


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu() -> None:
    training = TRAINING.model_copy(update={"device": "cuda", "precision": "bf16"})
    model = PretrainingModel(SMALL).to("cuda")
    steps = take_steps(model, MaskedLanguage(NEXT_SENTENCE), synthetic_steps(100, 8, 16, Share(4)), training)
    assert time_steps(steps, torch.device("cuda"), steps=3).median > 0
    assert matmul_rate(torch.device("cuda"), "bf16", seconds=0.1) > 1e12
