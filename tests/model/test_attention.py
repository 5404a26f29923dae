import pytest
import torch

from bertcli.model import attention_written_out
from bertcli.model.attention import attend, attend_reference
from bertcli.model.attention_written_out import attend_for_some, attend_in_groups, attend_written_out
from bertcli.model.head_layout import HeadLayout
from bertcli.model.packing import Packing

B, N, T, H = 3, 5, 7, 11


@pytest.fixture
def heads():
    torch.manual_seed(0)
    return torch.randn(3, B, N, T, H, requires_grad=True)


@pytest.fixture
def mask_B11T():
    lengths_B = torch.tensor([T, 1, 4])
    return (torch.arange(T) < lengths_B[:, None])[:, None, None, :]


def written_out(heads, mask_B11T, dropout):
    """By way of packed rows, as the model does it; as many of them as there are places."""
    mask_BT = None if mask_B11T is None else mask_B11T[:, 0, 0]
    packing = Packing.of(mask_BT, (B, T), torch.device("cpu"), num_heads=N)
    assert packing.groups is not None
    projected_RE = packing.pack(heads.permute(1, 3, 0, 2, 4).flatten(2))
    context_RD = attend_in_groups(projected_RE, packing.groups, dropout)
    return packing.unpack(context_RD).unflatten(-1, (N, -1)).transpose(1, 2)


def asked_by_all(heads, mask_B11T, dropout):
    """For some tokens that are all there are, last row first."""
    mask_BT = None if mask_B11T is None else mask_B11T[:, 0, 0]
    packing = Packing.of(mask_BT, (B, T), torch.device("cpu"), num_heads=N)
    places_K = torch.arange(B * T) if mask_BT is None else mask_BT.flatten().nonzero().squeeze(1)
    wanted = packing.want(places_K.flip(0))
    assert wanted.queries is not None
    assert wanted.keys is not None
    projected_RE = packing.pack(heads.permute(1, 3, 0, 2, 4).flatten(2))
    query_RD, keys_values_RE = projected_RE.split([N * heads.shape[-1], 2 * N * heads.shape[-1]], dim=1)
    query_KD = query_RD[wanted.numbers_K]
    context_KD = attend_for_some(
        query_KD, wanted.queries, keys_values_RE, wanted.keys, packing.mask_B11T, dropout
    )
    context_BTD = context_KD.new_zeros(B * T, context_KD.shape[1]).index_copy(0, places_K.flip(0), context_KD)
    return context_BTD.view(B, T, N, -1).transpose(1, 2)


WAYS = pytest.mark.parametrize(
    "way", [attend, written_out, asked_by_all], ids=["torch", "written out", "for some"]
)


@pytest.mark.parametrize("padded", [False, True])
@WAYS
def test_every_way_agrees_with_the_reference(heads, mask_B11T, padded, way):
    mask = mask_B11T if padded else None
    fast = way(heads, mask, dropout=0.0)
    reference, _ = attend_reference(heads, mask, dropout=0.0)
    real = torch.ones(B, 1, T, 1, dtype=torch.bool) if mask is None else mask.transpose(2, 3)
    torch.testing.assert_close(fast * real, reference * real, rtol=1e-5, atol=1e-6)
    weights = torch.randn_like(fast) * real
    (fast_grad,) = torch.autograd.grad((fast * weights).sum(), heads)
    (reference_grad,) = torch.autograd.grad((reference * weights).sum(), heads)
    torch.testing.assert_close(fast_grad, reference_grad, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("padded", [False, True])
@WAYS
def test_large_scores_keep_their_differences_in_bf16(heads, mask_B11T, padded, way):
    """Scores of 30 to 100 as bf16 would be off by up to 0.25, what they weigh by a quarter."""
    mask = mask_B11T if padded else None
    heads = heads.detach()[..., :4]  # whose square root is exact
    heads[0], heads[1] = 4 + heads[0], 8 + heads[1] / 4
    heads = heads.bfloat16().requires_grad_()
    reference, _ = attend_reference(heads.float(), mask, dropout=0.0)
    real = torch.ones(B, 1, T, 1, dtype=torch.bool) if mask is None else mask.transpose(2, 3)
    torch.testing.assert_close(way(heads, mask, 0.0).float() * real, reference * real, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("way", [written_out, asked_by_all])
def test_rows_computed_in_turn_are_as_those_computed_at_once(heads, mask_B11T, way, monkeypatch):
    at_once = way(heads, mask_B11T, dropout=0.0)
    monkeypatch.setattr(attention_written_out, "_AT_ONCE", 2 * N * T * T)
    torch.testing.assert_close(way(heads, mask_B11T, dropout=0.0), at_once)


@pytest.mark.parametrize("padded", [False, True])
@WAYS
def test_its_gradient_is_that_of_what_it_computes_with_dropout(heads, mask_B11T, padded, way):
    def attend_again(heads):
        torch.manual_seed(5)  # the same elements are dropped each time
        return way(heads, mask_B11T if padded else None, dropout=0.4)

    assert torch.autograd.gradcheck(attend_again, heads.detach()[..., :3].double().requires_grad_())


def test_it_leaves_its_inputs_as_they_are():
    layout = HeadLayout.of(torch.tensor([0]), torch.tensor([[0]]), num_heads=1)  # whose copy changes no order
    projected_RE = torch.randn(1, 3 * H, requires_grad=True)
    before = projected_RE.detach().clone()
    attend_written_out(projected_RE, layout, None, dropout=0.4).sum().backward()
    assert torch.equal(projected_RE, before)


def test_the_reference_is_the_papers_equation_token_by_token(heads):
    heads = heads.detach().double()
    context, probabilities = attend_reference(heads, None, dropout=0.0)
    query, key, value = heads
    b, n, t = 2, 3, 4
    scores = torch.stack([query[b, n, t] @ key[b, n, other] for other in range(T)]) / 11**0.5
    weights = scores.exp() / scores.exp().sum()
    torch.testing.assert_close(probabilities[b, n, t], weights)
    torch.testing.assert_close(
        context[b, n, t], sum(weights[other] * value[b, n, other] for other in range(T))
    )


def test_nothing_looks_at_padding(heads, mask_B11T):
    _, probabilities = attend_reference(heads, mask_B11T, dropout=0.0)
    assert (probabilities.masked_select(~mask_B11T) == 0).all()
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(B, N, T))


def test_dropout_falls_on_the_probabilities_and_keeps_their_mean(heads):
    heads = torch.stack([*heads[:2], torch.ones(B, N, T, H)])
    torch.manual_seed(0)
    for attention in (attend, written_out, lambda *inputs: attend_reference(*inputs)[0]):
        sums = torch.stack([attention(heads, None, 0.25).detach() for _ in range(60)])
        assert sums.std() > 0.05
        assert sums.mean().item() == pytest.approx(1.0, abs=0.02)
