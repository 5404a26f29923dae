from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from bertcli.objectives import masked_language as cross_entropy
from bertcli.objectives.masked_language import IGNORED, vocabulary_cross_entropy


@pytest.mark.parametrize("chunk", [1, 50, 1 << 18])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("ignored", [0, 3, 8])
def test_loss_and_gradient_are_those_of_torch(chunk, dtype, ignored, monkeypatch):
    monkeypatch.setattr(cross_entropy, "_CHUNK", chunk)
    torch.manual_seed(0)
    logits = (30 * torch.randn(8, 11)).to(dtype).requires_grad_()
    targets = torch.randint(11, (8,))
    targets[8 - ignored :] = IGNORED
    term = vocabulary_cross_entropy(logits, targets)
    (gradient,) = torch.autograd.grad(term.loss / 7, logits)
    expected = F.cross_entropy(logits.float(), targets, reduction="sum")
    torch.testing.assert_close(term.loss, expected)
    (expected_gradient,) = torch.autograd.grad(expected / 7, logits)
    torch.testing.assert_close(gradient, expected_gradient)
    assert term.correct == (logits.argmax(-1) == targets).sum()


def test_extreme_logits_stay_finite():
    logits = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    term = vocabulary_cross_entropy(logits, torch.tensor([1]))
    (gradient,) = torch.autograd.grad(term.loss, logits)
    assert term.loss == 2e4
    assert gradient.tolist() == [[1.0, -1.0, 0.0]]


def test_none_at_all_costs_nothing():
    term = vocabulary_cross_entropy(torch.zeros(0, 5, requires_grad=True), torch.zeros(0, dtype=torch.int64))
    term.loss.backward()
    assert (term.loss, term.correct) == (0, 0)


def test_a_second_backward_pass_is_refused_not_wrong():
    logits = torch.randn(2, 5, requires_grad=True)
    loss = vocabulary_cross_entropy(logits, torch.tensor([1, 2])).loss
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="inplace"):
        loss.backward()
