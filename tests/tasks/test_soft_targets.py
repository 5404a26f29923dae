"""The loss of a teacher's answers: against torch's own losses, and by its properties."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from bertcli.tasks.supervised import NEVER
from bertcli.training.task_models import soft_loss


def logits(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 3


@given(temperature=st.sampled_from([1.0, 2.0, 7.5]))
def test_softmax_is_the_divergence_from_the_teacher(temperature: float) -> None:
    own, theirs = logits(1, 5, 3).requires_grad_(), logits(2, 5, 3)
    got = soft_loss(own, theirs, kind="softmax", temperature=temperature)
    soft = (theirs / temperature).softmax(-1)
    want = (soft * (soft.log() - (own / temperature).softmax(-1).log())).sum() * temperature**2
    torch.testing.assert_close(got, want)
    (gradient,) = torch.autograd.grad(got, own)
    torch.testing.assert_close(gradient, temperature * ((own / temperature).softmax(-1) - soft).detach())


@given(
    kind=st.sampled_from(["softmax", "sigmoid", "value"]),
    temperature=st.floats(0.5, 10),
    shape=st.sampled_from([(4, 3), (4, 2, 6)]),
)
def test_equal_answers_cost_nothing_and_others_something(
    kind: str, temperature: float, shape: tuple[int, ...]
) -> None:
    theirs = logits(3, *shape)
    none = soft_loss(theirs, theirs, kind=kind, temperature=temperature)  # pyright: ignore[reportArgumentType]
    assert abs(float(none)) < 1e-3
    some = soft_loss(logits(4, *shape), theirs, kind=kind, temperature=temperature)  # pyright: ignore[reportArgumentType]
    assert float(some) > 0.1


def test_places_that_cannot_be_chosen_cost_nothing() -> None:
    """Padding of a row, and choices that an example does not have."""
    own, theirs = logits(5, 2, 2, 4), logits(6, 2, 2, 4)
    padded = [F.pad(each, (0, 3), value=NEVER) for each in (own, theirs)]
    want = soft_loss(own, theirs, kind="softmax", temperature=2.0)
    got = soft_loss(padded[0].requires_grad_(), padded[1], kind="softmax", temperature=2.0)
    torch.testing.assert_close(got, want)
    got.backward()
    assert padded[0].grad is not None
    assert torch.equal(padded[0].grad[..., 4:], torch.zeros(2, 2, 3))


def test_the_parts_of_an_answer_are_averaged() -> None:
    own, theirs = logits(7, 3, 2, 5), logits(8, 3, 2, 5)
    parts = [soft_loss(own[:, i], theirs[:, i], kind="softmax", temperature=2.0) for i in (0, 1)]
    torch.testing.assert_close(soft_loss(own, theirs, kind="softmax", temperature=2.0), sum(parts) / 2)
