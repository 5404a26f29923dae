"""The encoder on packed rows, and its last layer for selected tokens, agree with the plain path."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bertcli.model import layer as layer_module
from bertcli.model.architecture import Architecture, Relative
from bertcli.model.encoder import Body
from bertcli.model.fast.packing import round_up
from bertcli.model.layer import Attention
from bertcli.model.seam import plain_path

SELECTED_K = torch.tensor([22, 0, 5, 16, 0, 11])  # one of them twice
PATHS = pytest.mark.parametrize(
    "off", [(), ("packing",), ("last_layer",), ("written_out",), ("attention",), ("disentangled",)]
)


@pytest.fixture
def body(odd: Architecture) -> Body:
    torch.manual_seed(0)
    return Body(replace(odd, dropout=0.0, attention_dropout=0.0)).double()


def rows(lengths: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    ids_BT = torch.arange(len(lengths) * max(lengths)).view(len(lengths), -1) * 7 % 37
    return ids_BT, torch.zeros_like(ids_BT), torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]


def assert_agree(body: Body, inputs: tuple[Tensor, ...], off: tuple[str, ...] = ()) -> None:
    """What is read of the hidden states and every gradient of it: faster, and on the plain path."""

    def compute() -> Any:
        hidden = body(*inputs)
        read = hidden if len(inputs) == 4 else hidden[inputs[2]]
        return read, torch.autograd.grad(
            (read.square() * torch.arange(len(read))[:, None]).sum(), list(body.parameters())
        )

    with plain_path():
        want = compute()
    if off:
        with plain_path(*off):
            torch.testing.assert_close(compute(), want)
    else:
        torch.testing.assert_close(compute(), want)


@PATHS
@pytest.mark.parametrize("lengths", [[11, 6, 1], [11, 11, 11]], ids=["padded", "full"])
@pytest.mark.parametrize("training", [False, True])
def test_selected_tokens_come_out_as_on_the_plain_path(
    body: Body, lengths: list[int], training: bool, off: tuple[str, ...]
) -> None:
    assert_agree(body.train(training), (*rows(lengths), SELECTED_K), off)


@PATHS
@pytest.mark.parametrize("selected", [SELECTED_K, None], ids=["selected", "all"])
def test_relative_positions_come_out_as_on_the_plain_path(
    odd: Architecture, selected: Tensor | None, off: tuple[str, ...]
) -> None:
    torch.manual_seed(0)
    relative = Relative(True, True, max_distance=19, buckets=6, normalized_table=True)
    sizes = replace(odd, dropout=0.0, attention_dropout=0.0, relative=relative, position_table=False)
    inputs = rows([11, 6, 1])
    assert_agree(Body(sizes).double(), inputs if selected is None else (*inputs, selected), off)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_rows_of_any_lengths_come_out_as_on_the_plain_path(lengths: list[int]) -> None:
    torch.manual_seed(0)
    sizes = Architecture(37, 16, 2, 4, 32, 16, dropout=0.0, attention_dropout=0.0)
    assert_agree(Body(sizes).double(), rows(lengths))


def test_attention_that_depends_on_places_gets_all_queries(
    body: Body, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Attention, "any_queries", False)
    assert_agree(body, (*rows([11, 6, 1]), SELECTED_K))
    assert queries_of(body, monkeypatch) == [11, 11]


def queries_of(body: Body, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of queries in a row, for each layer."""
    seen = []
    attend = layer_module.attend

    def recorded(query_BNWH: Tensor, *others: Any, **named: Any) -> Tensor:
        seen.append(query_BNWH.shape[2])
        return attend(query_BNWH, *others, **named)

    monkeypatch.setattr(layer_module, "attend", recorded)
    body(*rows([11, 6, 1]), SELECTED_K)
    monkeypatch.setattr(layer_module, "attend", attend)
    return seen


def test_padding_is_not_computed_and_the_last_layer_is_for_selected_tokens(body: Body) -> None:
    def seen(*off: str) -> list[Any]:
        shapes = []
        hooks = [
            layer.get_submodule("feed_forward").register_forward_hook(
                lambda _, __, output: shapes.append(tuple(output.shape[:-1]))
            )
            for layer in body.encoder.layers
        ]
        if off:
            with plain_path(*off):
                body(*rows([11, 6, 1]), SELECTED_K)
        else:
            body(*rows([11, 6, 1]), SELECTED_K)
        for hook in hooks:
            hook.remove()
        return shapes

    assert round_up(18) == 18
    assert seen() == [(18,), (6,)]
    assert seen("packing") == [(33,), (6,)]
    assert seen("last_layer") == [(18,), (18,)]
    assert seen("packing", "last_layer") == [(3, 11)] * 2


def test_queries_are_those_of_selected_tokens_in_training(
    body: Body, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert queries_of(body, monkeypatch) == [11, 3]  # row 0 has three of them
    with torch.no_grad():
        assert queries_of(body, monkeypatch) == [11, 11]


def test_where_no_token_is_selected_nothing_comes_out_and_no_gradient_goes_back(body: Body) -> None:
    ids_BT, segments_BT, _ = rows([5, 5])
    hidden_KD = body(ids_BT, segments_BT, None, torch.empty(0, dtype=torch.int64))
    assert hidden_KD.shape == (0, 15)
    hidden_KD.sum().backward()
    assert not any(parameter.grad.any() for parameter in body.parameters() if parameter.grad is not None)
