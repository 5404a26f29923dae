from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bertcli.advice.bench.timing import synthetic_steps, take_steps, training_to_time
from bertcli.batches.share import Share
from bertcli.config.run import decided_loop
from bertcli.model.architecture import Architecture, Relative
from bertcli.model.pretraining import PretrainingModel
from bertcli.objectives.masked_language import MaskedLanguage
from bertcli.objectives.registry import NEXT_SENTENCE
from bertcli.system.memory import FP32, HEAP_WASTE, StepSizes, rows_that_fit, step_memory
from tests.system.live_bytes import LiveBytes

ARCHITECTURE = Architecture(2000, 128, layers=4, heads=2, feed_forward=512, max_positions=128)
MODERNBERT: dict[str, Any] = {
    **{"num_segments": 0, "position_table": False, "biases": False, "pre_norm": True},
    **{"rotary_bases": (160_000.0, 10_000.0), "local_layers": (False, True, True, False), "window": 8},
}
RELATIVE = Relative(True, True, max_distance=128, buckets=64, normalized_table=True)
SIZES = StepSizes(rows=8, length=64, predicted=0.125, half=False, checkpointing=False, on_cpu=True)


@pytest.fixture
def no_waste(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors alone, without what a heap makes of them."""
    monkeypatch.setattr("bertcli.system.memory.HEAP_WASTE", 1.0)


@pytest.mark.usefixtures("no_waste")
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"half": True},
        {"checkpointing": True},
        {"dropout": 0.0},
        {"dropout": 0.0, "half": True},
        {"vocab_size": 30_000},
        {"vocab_size": 30_000, "half": True},
        {"length": 128, "rows": 4, "layers": 6},
        {"embedding": 32, "layer_groups": 1},
        MODERNBERT,
        MODERNBERT | {"dropout": 0.0, "half": True},
        {"relative": RELATIVE},
        {"relative": RELATIVE, "half": True},
        {"relative": RELATIVE, "checkpointing": True},
        {"relative": RELATIVE, "length": 128, "rows": 4, "layers": 6},
    ],
    ids=str,
)
def test_a_step_holds_what_is_calculated(change: dict) -> None:
    of_sizes = {key: value for key, value in change.items() if key in StepSizes.__dataclass_fields__}
    of_model = {key: value for key, value in change.items() if key not in of_sizes}
    if "dropout" in of_model:
        of_model["attention_dropout"] = of_model["dropout"]
    architecture, sizes = replace(ARCHITECTURE, **of_model), replace(SIZES, **of_sizes)
    model = PretrainingModel(architecture)
    model.body.encoder.activation_checkpointing = sizes.checkpointing
    parameters = sum(parameter.numel() for parameter in model.parameters())

    batches = synthetic_steps(
        architecture.vocab_size,
        2 * sizes.rows,
        sizes.length,
        Share(sizes.rows),
        mask_rate=sizes.predicted,
    )
    training = training_to_time(
        batch_size=sizes.rows,
        micro_batch_size=sizes.rows,
        device="cpu",
        precision="bf16" if sizes.half else "fp32",
        compile=False,
    )
    reports = take_steps(model, MaskedLanguage(NEXT_SENTENCE), batches, decided_loop(training, {}))
    next(reports)  # which makes the moments
    with LiveBytes(model.parameters()) as live:
        next(reports)
    need = step_memory(architecture, parameters, parameters, sizes)
    calculated = need.total - need.moments - FP32 * parameters
    assert calculated == pytest.approx(live.peak, rel=0.1)


def test_weights_gradients_and_moments_are_those_of_adamw() -> None:
    need = step_memory(ARCHITECTURE, 1000, 600, SIZES)
    assert (need.weights, need.gradients, need.moments) == (1000 * FP32, 600 * FP32, 2 * 600 * FP32)
    assert need.total == need.weights + need.gradients + need.moments + need.activations + need.logits


def test_a_labeled_task_has_no_logits_over_the_vocabulary() -> None:
    assert step_memory(ARCHITECTURE, 1000, 1000, replace(SIZES, predicted=0.0)).logits == 0


def test_what_a_step_keeps_and_frees_costs_a_cpus_heap_more_than_it_is() -> None:
    on_gpu = replace(SIZES, on_cpu=False)
    logits = FP32 * SIZES.tokens * SIZES.predicted * ARCHITECTURE.vocab_size
    assert step_memory(ARCHITECTURE, 1, 1, on_gpu).logits == 3 * logits
    assert step_memory(ARCHITECTURE, 1, 1, SIZES).logits == pytest.approx(HEAP_WASTE * 2 * logits)


@pytest.mark.parametrize("rows", [1, 2, 7, 50, 64])
def test_as_many_rows_as_fit(rows: int) -> None:
    need = step_memory(ARCHITECTURE, 1000, 1000, replace(SIZES, rows=rows)).total
    assert rows_that_fit(ARCHITECTURE, 1000, SIZES, need, at_most=64) == rows
    assert rows_that_fit(ARCHITECTURE, 1000, SIZES, need - 1, at_most=64) == max(1, rows - 1)
