"""The stack of layers, and with the embeddings the body: ids -> hidden states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bertcli.model.architecture import Architecture
from bertcli.model.attention import Attention
from bertcli.model.convolution import ConvolutionLayer
from bertcli.model.disentangled import DisentangledAttention, RelativeTable
from bertcli.model.embeddings import Embeddings
from bertcli.model.fast import encoder as fast_encoder
from bertcli.model.fast.switch import plain_path, replaced_by
from bertcli.model.feed_forward import FeedForward
from bertcli.model.layer import EncoderLayer
from bertcli.model.mask_decoder import TIMES
from bertcli.model.norm import layer_norm
from bertcli.model.pre_norm import PreNormLayer
from bertcli.model.rotary import RotaryAttention


def build_layer(architecture: Architecture, number: int) -> EncoderLayer:
    """The layer `number`, from 0, of the kind that the architecture names."""
    if architecture.pre_norm:
        return PreNormLayer(architecture, RotaryAttention(architecture, number), is_first=number == 0)
    if architecture.relative is not None:
        attention = DisentangledAttention(architecture, architecture.relative)
        return EncoderLayer(architecture, attention, FeedForward(architecture))
    return EncoderLayer(architecture, Attention(architecture), FeedForward(architecture))


class Encoder(nn.Module):
    """`architecture.layers` layers, one after the other; some may have the same weights.

    With `activation_checkpointing`, the backward pass computes a layer's activations again instead of keeping
    them (Chen et al. 2016): less memory, about a third more time, the same gradients to the bit.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.order = architecture.layer_order
        self.layers = nn.ModuleList(build_layer(architecture, number) for number in sorted(set(self.order)))
        self.norm = layer_norm(architecture) if architecture.pre_norm else nn.Identity()
        relative, convolution = architecture.relative, architecture.convolution
        self.relative = None if relative is None else RelativeTable(architecture, relative)
        self.convolution = None if convolution is None else ConvolutionLayer(architecture, convolution)
        self.activation_checkpointing = False

    @replaced_by(fast_encoder.encode, when=fast_encoder.is_faster)
    def forward(
        self,
        hidden_BTD: Tensor,
        mask_BT: Tensor | None,
        selected_K: Tensor | None = None,
        positions_TD: Tensor | None = None,
    ) -> Tensor:
        """The last layer's output: [B, T, D], or [K, D] of the selected tokens.

        Args:
            mask_BT: bool, True at real tokens; None: no padding.
            selected_K: int64, flat positions b * T + t of real tokens; None: all tokens, also padding.
            positions_TD: of `MaskDecoder`, for the queries of the last layer; None: without it.
        """
        mask_B11T, shared = _for_attention(mask_BT, hidden_BTD), self.shared()
        beside_BTD = self.beside_first(hidden_BTD, mask_BT)
        *lower, last = self.in_order()
        for layer in lower if positions_TD is not None else [*lower, last]:
            hidden_BTD = self.run(layer, hidden_BTD, mask_B11T, *shared)
            hidden_BTD, beside_BTD = self.join(hidden_BTD, beside_BTD), None
        if positions_TD is not None:
            queries_BTD = hidden_BTD + positions_TD.to(hidden_BTD.dtype)
            for _ in range(TIMES):
                queries_BTD = self.run(last, hidden_BTD, mask_B11T, *shared, queries_BTD=queries_BTD)
            hidden_BTD = queries_BTD
        return self.norm(hidden_BTD if selected_K is None else hidden_BTD.flatten(0, 1)[selected_K])

    def shared(self) -> tuple[Tensor, ...]:
        """What the attention of all layers reads besides hidden states."""
        return () if self.relative is None else (self.relative(),)

    def beside_first(self, embedded_BTD: Tensor, mask_BT: Tensor | None) -> Tensor | None:
        """What `join` adds to the first layer's output; None: nothing."""
        return None if self.convolution is None else self.convolution(embedded_BTD, mask_BT)

    def join(self, hidden_BTD: Tensor, beside_BTD: Tensor | None) -> Tensor:
        """A layer's output, with what was computed beside it, for each token by itself."""
        if self.convolution is None or beside_BTD is None:
            return hidden_BTD
        return self.convolution.add(hidden_BTD, beside_BTD)

    def in_order(self) -> list[nn.Module]:
        """The layers as `forward` takes them; one with shared weights several times."""
        return [self.layers[number] for number in self.order]

    def run(self, layer: nn.Module, *inputs: Any, **named: Any) -> Tensor:
        """One layer, with or without activation checkpointing."""
        if self.activation_checkpointing and self.training:
            return checkpoint(layer, *inputs, use_reentrant=False, preserve_rng_state=True, **named)
        return layer(*inputs, **named)


class Body(nn.Module):
    """Embeddings and encoder (Devlin et al. 2019, section 3), the common part of all models."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.embeddings = Embeddings(architecture)
        self.encoder = Encoder(architecture)

    def forward(
        self,
        ids_BT: Tensor,
        segments_BT: Tensor,
        mask_BT: Tensor | None = None,
        selected_K: Tensor | None = None,
        positions_TD: Tensor | None = None,
    ) -> Tensor:
        """`ids_BT`, `segments_BT` (int64), `mask_BT` (bool, True at real tokens; None: no padding) ->
        hidden_BTD. Values at padding have no meaning, but are never NaN.

        With `selected_K` (int64, flat positions b * T + t of real tokens) only hidden_KD, which is less work.
        `positions_TD` as in `Encoder`.
        """
        if mask_BT is not None:  # a row of padding alone attends to itself: a softmax over nothing is NaN
            mask_BT = mask_BT | ~mask_BT.any(dim=1, keepdim=True)
        embedded_BTD = _narrow(self.embeddings(ids_BT, segments_BT))
        return self.encoder(embedded_BTD, mask_BT, selected_K, positions_TD=positions_TD)

    def trace(
        self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The intermediate values of `forward` on the plain path: layers + 1 hidden states [B, T, D], the
        embeddings first, and the probabilities_BNTT of each layer's attention."""
        hidden_states, probabilities = [_narrow(self.embeddings(ids_BT, segments_BT))], []
        mask_B11T, shared = _for_attention(mask_BT, ids_BT), self.encoder.shared()
        beside_BTD = self.encoder.beside_first(hidden_states[0], mask_BT)
        with plain_path():
            for layer in self.encoder.in_order():
                assert isinstance(layer, EncoderLayer)
                attention_input_BTD = layer.before_attention(hidden_states[-1])
                probabilities.append(layer.attention.probabilities(attention_input_BTD, mask_B11T, *shared))
                hidden_BTD = layer(hidden_states[-1], mask_B11T, *shared)
                hidden_states.append(self.encoder.join(hidden_BTD, beside_BTD))
                beside_BTD = None
        hidden_states[-1] = self.encoder.norm(hidden_states[-1])
        return hidden_states, probabilities


def encoders(model: nn.Module) -> Iterator[Encoder]:
    """Every encoder in a model: one, and with a generator two."""
    return (module for module in model.modules() if isinstance(module, Encoder))


def first_tokens(ids_BT: Tensor) -> Tensor:
    """int64 [B]: the flat positions of the rows' first tokens, whose hidden states represent the rows."""
    return torch.arange(ids_BT.shape[0], device=ids_BT.device) * ids_BT.shape[1]


def mean(hidden_BTD: Tensor, mask_BT: Tensor | None) -> Tensor:
    """[B, D]: the mean over the real tokens of each row, 0 without any. `mask_BT` as in `Body`."""
    if mask_BT is None:
        return hidden_BTD.mean(dim=1)
    mask_BT = mask_BT.to(hidden_BTD.device)
    number_B1 = mask_BT.sum(dim=1, keepdim=True).clamp_min(1)
    return (hidden_BTD * mask_BT[:, :, None]).sum(dim=1) / number_B1


def _for_attention(mask_BT: Tensor | None, like: Tensor) -> Tensor | None:
    """-> mask_B11T, on the same device."""
    return None if mask_BT is None else mask_BT.to(like.device)[:, None, None, :]


def _narrow(hidden_BTD: Tensor) -> Tensor:
    """In mixed precision, hidden states between layers have 16 bits as well, which saves casts. Embeddings
    have not, because the gradient of a frequent word is a sum of hundreds."""
    device = hidden_BTD.device.type
    return (
        hidden_BTD.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else hidden_BTD
    )
