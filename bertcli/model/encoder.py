"""Ids -> hidden states: the embeddings, and the stack of layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bertcli.families.relative import Convolution
from bertcli.model.architecture import Architecture
from bertcli.model.disentangled import DisentangledAttention, RelativeTable
from bertcli.model.layer import ACTIVATIONS, Attention, Dropout, EncoderLayer, FeedForward, Rows, layer_norm
from bertcli.model.rotary import PreNormLayer, RotaryAttention
from bertcli.model.seam import plain_path, replaceable


class Embeddings(nn.Module):
    """Word + learned position + segment (Devlin et al. 2019, section 3, figure 2).

    Embeddings narrower than the layers are widened at the end (Lan et al. 2020, section 3.1).
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        sizes, width = architecture, architecture.embedding or architecture.hidden
        self.word = nn.Embedding(sizes.vocab_size, width)
        self.position = nn.Embedding(sizes.max_positions, width) if sizes.position_table else None
        self.segment = nn.Embedding(sizes.num_segments, width) if sizes.num_segments else None
        self.norm = layer_norm(sizes, width)
        self.dropout = Dropout(sizes.dropout)
        self.widen = nn.Linear(width, sizes.hidden) if sizes.embedding else None
        self.position_offset, self.usable_positions = sizes.position_offset, sizes.usable_positions

    def forward(self, ids_BT: Tensor, segments_BT: Tensor) -> Tensor:
        """`ids_BT` and `segments_BT` (int64; ignored by a model with one segment or none) -> hidden_BTD.

        Raises `ValueError` if T exceeds the model's positions.
        """
        num_tokens, usable = ids_BT.shape[1], self.usable_positions
        if num_tokens > usable:
            raise ValueError(f"rows of {num_tokens} tokens, but the model has {usable} positions")
        # The order of this sum is that of the original: another order differs in the last bit.
        hidden_BTD = self.word(ids_BT)
        if self.segment is not None:
            hidden_BTD = hidden_BTD + self.segment(segments_BT.clamp(max=self.segment.num_embeddings - 1))
        if self.position is not None:
            positions_T = torch.arange(num_tokens, device=ids_BT.device) + self.position_offset
            hidden_BTD = hidden_BTD + self.position(positions_T)
        hidden_BTD = self.dropout(self.norm(hidden_BTD))
        return hidden_BTD if self.widen is None else self.widen(hidden_BTD)


class ConvolutionLayer(nn.Module):
    """LayerNorm(first layer's output + activation(Dropout(convolution(embeddings))))."""

    def __init__(self, architecture: Architecture, sizes: Convolution) -> None:
        super().__init__()
        hidden = architecture.hidden
        self.convolve = nn.Conv1d(hidden, hidden, sizes.width, padding=sizes.width // 2, groups=sizes.groups)
        self.activation = ACTIVATIONS[sizes.activation]
        self.dropout = Dropout(architecture.dropout)
        self.norm = nn.LayerNorm(hidden, eps=architecture.layer_norm_eps)

    def forward(self, embedded_BTD: Tensor, mask_BT: Tensor | None) -> Tensor:
        """The embeddings [B, T, D] -> what `add` adds [B, T, D]. Padding counts as zeros."""
        if mask_BT is not None:
            embedded_BTD = embedded_BTD * mask_BT[..., None].to(embedded_BTD)
        return self.activation(self.dropout(self.convolve(embedded_BTD.mT).mT))

    def add(self, hidden_BTD: Tensor, convolved_BTD: Tensor) -> Tensor:
        """-> the second layer's input, for each token by itself."""
        return self.norm(hidden_BTD + convolved_BTD).to(hidden_BTD.dtype)


TIMES = 2
"""The last layer is applied so often, as in the authors' code."""


class MaskDecoder(nn.Module):
    """The positions that the last layer's queries get; keys and values stay those of the layers below.

    The layer is the encoder's own (`Encoder.forward`), so that only this table is new.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.positions = nn.Embedding(architecture.max_positions, architecture.hidden)

    def forward(self, length: int) -> Tensor:
        """-> positions_TD of rows of `length` tokens."""
        return self.positions.weight[:length]


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
        rows = lay_out(hidden_BTD, mask_BT, selected_K)
        last_BTD = self.norm(self.walk(hidden_BTD, mask_BT, rows, positions_TD=positions_TD))
        return last_BTD if selected_K is not None else rows.unpack(last_BTD)

    def walk(
        self,
        hidden_BTD: Tensor,
        mask_BT: Tensor | None,
        rows: Rows,
        positions_TD: Tensor | None = None,
        visit: Callable[[nn.Module, Tensor], None] | None = None,
    ) -> Tensor:
        """All layers, one after the other -> what the last one gives of the selected tokens of `rows`.

        `visit` is told of each layer and of its input. What is beside the first layer joins its output.
        """
        beside_BTD = None if self.convolution is None else rows.pack(self.convolution(hidden_BTD, mask_BT))
        if positions_TD is not None:
            positions_TD = rows.pack(positions_TD.to(hidden_BTD.dtype).expand_as(hidden_BTD))
        hidden_BTD, shared = rows.pack(hidden_BTD), self.shared()
        *lower, last = (self.layers[number] for number in self.order)
        for layer in lower:
            if visit is not None:
                visit(layer, hidden_BTD)
            hidden_BTD = self.join(self.run(layer, hidden_BTD, rows, *shared), beside_BTD)
            beside_BTD = None
        if visit is not None:
            visit(last, hidden_BTD)
        if positions_TD is not None:
            rows = rows.in_decoder()
            return rows.select(self.decode(last, hidden_BTD, rows, queries_BTD=hidden_BTD + positions_TD))
        rows = rows.in_last_layer() if beside_BTD is None else rows
        return rows.select(self.join(self.run(last, hidden_BTD, rows, *shared), beside_BTD))

    def decode(self, last: nn.Module, hidden_BTD: Tensor, rows: Rows, queries_BTD: Tensor) -> Tensor:
        """The last layer as `MaskDecoder` says, from the output of the layers below it."""
        shared = self.shared()
        decoded_BTD = self.run(last, hidden_BTD, rows, *shared, queries_BTD=queries_BTD)
        for _ in range(TIMES - 1):
            queries_BTD = rows.put(queries_BTD, decoded_BTD)
            decoded_BTD = self.run(last, hidden_BTD, rows, *shared, queries_BTD=queries_BTD)
        return decoded_BTD

    def shared(self) -> tuple[Tensor, ...]:
        """What the attention of all layers reads besides hidden states."""
        return () if self.relative is None else (self.relative(),)

    def join(self, hidden_BTD: Tensor, beside_BTD: Tensor | None) -> Tensor:
        """A layer's output, with what was computed beside it, for each token by itself."""
        if self.convolution is None or beside_BTD is None:
            return hidden_BTD
        return self.convolution.add(hidden_BTD, beside_BTD)

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
        hidden_states: list[Tensor] = []
        probabilities: list[Tensor] = []
        embedded_BTD, encoder = _narrow(self.embeddings(ids_BT, segments_BT)), self.encoder
        rows, shared = Rows(_for_attention(mask_BT, ids_BT)), encoder.shared()

        def visit(layer: nn.Module, hidden_BTD: Tensor) -> None:
            assert isinstance(layer, EncoderLayer)
            attention_input_BTD = layer.before_attention(hidden_BTD)
            probabilities.append(layer.attention.probabilities(attention_input_BTD, rows.mask_B11T, *shared))
            hidden_states.append(hidden_BTD)

        with plain_path():
            last_BTD = encoder.walk(embedded_BTD, mask_BT, rows, visit=visit)
        return [*hidden_states, encoder.norm(last_BTD)], probabilities


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


@replaceable
def lay_out(hidden_BTD: Tensor, mask_BT: Tensor | None, selected_K: Tensor | None) -> Rows:
    """Where the tokens of `hidden_BTD` are while the layers compute; arguments as in `Encoder.forward`."""
    return Rows(_for_attention(mask_BT, hidden_BTD), selected_K)


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
