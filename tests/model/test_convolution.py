"""The convolution beside the first layer, on padded rows and packed ones."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bertcli.model.architecture import Architecture, Convolution
from bertcli.model.encoder import Body, ConvolutionLayer
from bertcli.model.seam import plain_path

SIZES = Convolution(width=3, groups=5, activation="gelu")
LENGTHS = torch.tensor([[11], [6], [1]])


@pytest.mark.parametrize("width", [1, 3, 5])
def test_padding_counts_as_nothing(odd: Architecture, width: int) -> None:
    layer = ConvolutionLayer(odd, replace(SIZES, width=width)).eval()
    hidden_BTD, mask_BT = torch.randn(3, 11, odd.hidden), torch.arange(11) < LENGTHS
    padded_BTD = layer(hidden_BTD, mask_BT)
    for row, length in enumerate(LENGTHS.flatten().tolist()):
        alone_1TD = layer(hidden_BTD[row : row + 1, :length], None)
        torch.testing.assert_close(padded_BTD[row, :length], alone_1TD[0])


def test_a_token_sees_its_neighbors(odd: Architecture) -> None:
    layer = ConvolutionLayer(odd, replace(SIZES, groups=1, activation="tanh")).eval()
    hidden_BTD = torch.randn(1, 4, odd.hidden)
    around = torch.einsum("odk,kd->o", layer.convolve.weight, hidden_BTD[0, 1:4])
    expected = torch.tanh(around + layer.convolve.get_parameter("bias"))
    torch.testing.assert_close(layer(hidden_BTD, None)[0, 2], expected)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("selected_K", [None, torch.tensor([22, 0, 5, 16, 0, 11])], ids=["all", "selected"])
def test_packed_rows_come_out_as_on_the_plain_path(
    odd: Architecture, layers: int, selected_K: Tensor | None
) -> None:
    torch.manual_seed(0)
    sizes = replace(odd, layers=layers, convolution=SIZES, dropout=0.0, attention_dropout=0.0)
    body, ids_BT = Body(sizes).double(), torch.arange(33).view(3, 11)
    mask_BT = torch.arange(11) < LENGTHS

    def compute() -> tuple[Tensor, ...]:
        hidden = body(ids_BT, torch.zeros_like(ids_BT), mask_BT, selected_K)
        read = hidden[mask_BT] if selected_K is None else hidden
        weights = torch.arange(len(read))[:, None]
        return read, *torch.autograd.grad((read.square() * weights).sum(), list(body.parameters()))

    with plain_path():
        want = compute()
    torch.testing.assert_close(compute(), want)
