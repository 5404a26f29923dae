from __future__ import annotations

from dataclasses import replace

import pytest

from bertcli.config.model import HEAD_SIZE, PRESETS
from bertcli.model.architecture import Architecture, Relative, forward_flops, training_flops


def sizes(preset: str) -> Architecture:
    layers, hidden = PRESETS[preset]
    return Architecture(30522, hidden, layers, hidden // HEAD_SIZE, 4 * hidden, 512)


@pytest.mark.parametrize(
    ("preset", "length", "predicted", "millions"),
    [
        ("base", 128, 0.15, 545.4),
        ("base", 512, 1.0, 710.4),
        ("large", 512, 0.15, 1992.0),
        ("tiny", 128, 0.15, 6.3),
        ("mini", 128, 0.3, 34.6),
    ],
)
def test_operations_a_token_of_the_published_sizes(
    preset: str, length: int, predicted: float, millions: float
) -> None:
    assert training_flops(sizes(preset), length, predicted) / 1e6 == pytest.approx(millions, abs=0.05)


def test_a_labeled_task_has_no_vocabulary_head() -> None:
    base = sizes("base")
    assert forward_flops(base, 128, 0.0) == 12 * (2 * (4 * 768**2 + 2 * 768 * 3072) + 4 * 128 * 768)


def test_a_gate_a_window_and_narrow_embeddings_are_counted() -> None:
    base = replace(sizes("base"), pre_norm=True, local_layers=(True,) * 8 + (False,) * 4, window=64)
    layers = 12 * 2 * (4 * 768**2 + 3 * 768 * 3072)
    assert forward_flops(base, 1000, 0.0) == layers + 4 * 768 * (8 * 129 + 4 * 1000)
    assert forward_flops(base, 100, 0.0) == layers + 4 * 768 * 12 * 100
    narrow = replace(sizes("base"), embedding=128)
    assert forward_flops(narrow, 9, 1.0) - forward_flops(narrow, 9, 0.0) == 2 * (768 * 128 + 128 * 30522)


def test_each_term_of_relative_positions_is_counted() -> None:
    base = sizes("base")
    both = replace(base, relative=Relative(True, True, max_distance=512))
    one = replace(base, relative=Relative(True, False, max_distance=512))
    term = 12 * 2 * 100 * 768
    assert forward_flops(both, 100, 0.0) == forward_flops(base, 100, 0.0) + 2 * term
    assert forward_flops(one, 100, 0.0) == forward_flops(base, 100, 0.0) + term
