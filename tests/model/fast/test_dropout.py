from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from bertcli.model.fast import dropout
from bertcli.model.fast.dropout import draw
from bertcli.model.layer import Dropout
from bertcli.model.seam import plain_path


@pytest.mark.parametrize("probability", [0.0, 0.1, 0.5, 0.9, 1.0 - 1e-9])
def test_so_many_are_dropped_and_what_stays_is_scaled_to_the_same_mean(probability):
    torch.manual_seed(0)
    kept, scale = draw(torch.empty(3, 400_001), probability)
    assert kept.shape == (3, 400_001)
    assert set(kept.unique().tolist()) <= {0, 1}
    error = (probability * (1 - probability) / kept.numel()) ** 0.5
    assert (kept == 0).float().mean().item() == pytest.approx(probability, abs=5 * error + 2**-16)
    if probability < 0.99:
        assert kept.float().mean().item() * scale == pytest.approx(1.0, abs=5 * error * scale)


def test_draws_are_independent_of_each_other(monkeypatch):
    monkeypatch.setattr(dropout, "_BLOCK", 1000)  # blocks are generators of their own
    torch.manual_seed(0)
    one, _ = draw(torch.empty(64, 1000), 0.5)
    two, _ = draw(torch.empty(64, 1000), 0.5)
    rows = torch.cat([one, two]).double() * 2 - 1
    correlations = rows @ rows.T / 1000 - torch.eye(128)
    assert correlations.abs().max() < 6 / 1000**0.5
    neighbors = (rows[:, 1:] * rows[:, :-1]).mean()
    assert abs(neighbors) < 6 / rows.numel() ** 0.5


def test_the_seed_decides_and_the_number_of_threads_does_not(monkeypatch):
    monkeypatch.setattr(dropout, "_BLOCK", 1000)

    def drawn(threads: int) -> torch.Tensor:
        monkeypatch.setattr(dropout, "_threads", lambda: ThreadPoolExecutor(threads))
        torch.manual_seed(3)
        return draw(torch.empty(7, 999), 0.3)[0]

    one = drawn(1)
    assert torch.equal(one, drawn(4))
    assert not torch.equal(one, draw(torch.empty(7, 999), 0.3)[0])


def test_the_gradient_is_that_of_what_is_computed():
    values = torch.randn(6, 5, dtype=torch.double, requires_grad=True)

    def dropped(values):
        torch.manual_seed(2)  # the same elements are dropped each time
        return Dropout(0.3)(values)

    assert torch.autograd.gradcheck(dropped, values, fast_mode=True)


def test_it_drops_as_many_as_torchs_own_and_keeps_the_mean():
    torch.manual_seed(0)
    values = torch.ones(1000, 1000)
    ours = Dropout(0.1)(values)
    with plain_path("dropout"):
        torchs = Dropout(0.1)(values)
    for dropped in (ours, torchs):
        assert dropped.mean().item() == pytest.approx(1.0, abs=2e-3)
        assert dropped.unique().tolist() == pytest.approx([0.0, 1 / 0.9], rel=1e-4)
    assert not torch.equal(ours, torchs)


def test_nothing_is_dropped_in_evaluation_or_where_nothing_is_to_be():
    values = torch.randn(4, 5)
    assert torch.equal(Dropout(0.5).eval()(values), values)
    assert torch.equal(Dropout(0.0)(values), values)
