"""Ids -> hidden states: the embeddings and the stack of layers."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from bertcli.model.architecture import Architecture, Convolution
from bertcli.model.disentangled import DisentangledAttention, RelativeTable
from bertcli.model.layer import ACTIVATIONS, Attention, Dropout, EncoderLayer, FeedForward, Rows, layer_norm
from bertcli.model.rotary import PreNormLayer, RotaryAttention
from bertcli.model.seam import plain_path, replaceable


class Embeddings(nn.Module):
    """The sum of word, learned position and segment embeddings (Devlin et al. 2019, section 3, figure 2).

    A dense layer at the end widens embeddings that are narrower than the layers (Lan et al. 2020, section
    3.1).
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
        """Embed `ids_BT` and `segments_BT` (int64; ignored by a model with one segment or none): hidden_BTD.

        Raises `ValueError` if T exceeds the model's positions.
        """
        num_tokens, usable = ids_BT.shape[1], self.usable_positions
        if num_tokens > usable:
            raise ValueError(f"rows of {num_tokens} tokens, but the model has {usable} positions")
        # The sum has the order of the original; another order differs in the last bit.
        hidden_BTD = self.word(ids_BT)
        if self.segment is not None:
            hidden_BTD = hidden_BTD + self.segment(segments_BT.clamp(max=self.segment.num_embeddings - 1))
        if self.position is not None:
            positions_T = torch.arange(num_tokens, device=ids_BT.device) + self.position_offset
            hidden_BTD = hidden_BTD + self.position(positions_T)
        hidden_BTD = self.dropout(self.norm(hidden_BTD))
        return hidden_BTD if self.widen is None else self.widen(hidden_BTD)


class ConvolutionLayer(nn.Module):
    """A convolution of the embeddings beside the first layer:
    LayerNorm(first layer's output + activation(Dropout(convolution(embeddings))))."""

    def __init__(self, architecture: Architecture, sizes: Convolution) -> None:
        super().__init__()
        hidden = architecture.hidden
        self.convolve = nn.Conv1d(hidden, hidden, sizes.width, padding=sizes.width // 2, groups=sizes.groups)
        self.activation = ACTIVATIONS[sizes.activation]
        self.dropout = Dropout(architecture.dropout)
        self.norm = nn.LayerNorm(hidden, eps=architecture.layer_norm_eps)

    def forward(self, embedded_BTD: Tensor, mask_BT: Tensor | None) -> Tensor:
        """Convolve the embeddings [B, T, D] -> [B, T, D], the input of `add`. Padding counts as zeros."""
        if mask_BT is not None:
            embedded_BTD = embedded_BTD * mask_BT[..., None].to(embedded_BTD)
        return self.activation(self.dropout(self.convolve(embedded_BTD.mT).mT))

    def add(self, hidden_BTD: Tensor, convolved_BTD: Tensor) -> Tensor:
        """The input of the second layer; each token is computed by itself."""
        return self.norm(hidden_BTD + convolved_BTD).to(hidden_BTD.dtype)


TIMES = 2
"""The number of times that the last layer is applied, as in the authors' code."""


class MaskDecoder(nn.Module):
    """The positions added to the queries of the last layer; keys and values are those of the layers below.

    The layer is the encoder's own (`Encoder.forward`), so that only this table is new.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.positions = nn.Embedding(architecture.max_positions, architecture.hidden)

    def forward(self, length: int) -> Tensor:
        """The positions_TD of rows of `length` tokens."""
        return self.positions.weight[:length]


def build_layer(architecture: Architecture, number: int) -> EncoderLayer:
    """Build layer `number`, from 0, of the kind that the architecture names."""
    if architecture.pre_norm:
        return PreNormLayer(architecture, RotaryAttention(architecture, number), is_first=number == 0)
    if architecture.relative is not None:
        attention = DisentangledAttention(architecture, architecture.relative)
        return EncoderLayer(architecture, attention, FeedForward(architecture))
    return EncoderLayer(architecture, Attention(architecture), FeedForward(architecture))


class Encoder(nn.Module):
    """The stack of `architecture.layers` layers; several layers may share weights.

    The option `activation_checkpointing` computes a layer's activations again in the backward pass instead of
    keeping them (Chen et al. 2016): less memory, about a third more time, the same gradients to the bit.
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
        """The last layer's output: [B, T, D], or [K, D] for selected tokens.

        Args:
            mask_BT: bool, True at real tokens; None means no padding.
            selected_K: int64, flat positions b * T + t of real tokens; None means all tokens and padding.
            positions_TD: the positions of `MaskDecoder` for the queries of the last layer, or None.
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
        visit: Callable[[nn.Module, Tensor], None] = lambda layer, hidden: None,
    ) -> Tensor:
        """Run all layers -> the last layer's output for the selected tokens of `rows`.

        `visit` is called with each layer and its input. The convolution joins the output of the first layer.
        Names without axes are values in the layout of `rows`.
        """
        beside = None if self.convolution is None else rows.pack(self.convolution(hidden_BTD, mask_BT))
        hidden, shared = rows.pack(hidden_BTD), self.shared()
        *lower, last = (self.layers[number] for number in self.order)
        for layer in lower:
            visit(layer, hidden)
            hidden = self.join(self.run(layer, hidden, rows, *shared), beside)
            beside = None
        visit(last, hidden)
        if positions_TD is not None:
            positions = rows.pack(positions_TD.to(hidden_BTD.dtype).expand_as(hidden_BTD))
            rows = rows.in_last_layer(decoder=True)
            return rows.select(self.decode(last, hidden, rows, queries=hidden + positions))
        rows = rows.in_last_layer() if beside is None else rows
        return rows.select(self.join(self.run(last, hidden, rows, *shared), beside))

    def decode(self, last: nn.Module, hidden: Tensor, rows: Rows, queries: Tensor) -> Tensor:
        """Apply the last layer `TIMES` times, with `MaskDecoder`'s queries, to the lower layers' output."""
        shared = self.shared()
        decoded = self.run(last, hidden, rows, *shared, queries_BTD=queries)
        for _ in range(TIMES - 1):
            queries = rows.put(queries, decoded)
            decoded = self.run(last, hidden, rows, *shared, queries_BTD=queries)
        return decoded

    def shared(self) -> tuple[Tensor, ...]:
        """The inputs of all layers' attention besides hidden states: `RelativeTable`'s output, or none."""
        return () if self.relative is None else (self.relative(),)

    def join(self, hidden: Tensor, beside: Tensor | None) -> Tensor:
        """A layer's output, joined with the convolution if there is one; each token is computed by itself."""
        if self.convolution is None or beside is None:
            return hidden
        return self.convolution.add(hidden, beside)

    def run(self, layer: nn.Module, *inputs: Any, **named: Any) -> Tensor:
        """Run one layer, with or without activation checkpointing."""
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
        """Encode `ids_BT` and `segments_BT` (int64) -> hidden_BTD. Values at padding have no meaning, but are
        never NaN.

        Args:
            mask_BT: bool, True at real tokens; None means no padding.
            selected_K: int64, flat positions b * T + t of real tokens. Only hidden_KD is then computed, which
                is less work.
            positions_TD: the positions of `MaskDecoder`, as in `Encoder`.
        """
        if mask_BT is not None:  # rows of only padding attend to themselves: a softmax over nothing is NaN
            mask_BT = mask_BT | ~mask_BT.any(dim=1, keepdim=True)
        embedded_BTD = _narrow(self.embeddings(ids_BT, segments_BT))
        return self.encoder(embedded_BTD, mask_BT, selected_K, positions_TD=positions_TD)

    def trace(
        self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The intermediate values of `forward` on the plain path: layers + 1 hidden states [B, T, D], which
        begin with the embeddings, and the probabilities_BNTT of each layer's attention."""
        hidden_states: list[Tensor] = []
        probabilities: list[Tensor] = []
        embedded_BTD, encoder = _narrow(self.embeddings(ids_BT, segments_BT)), self.encoder
        rows = Rows(attention_mask(mask_BT, ids_BT))
        shared = encoder.shared()

        def visit(layer: nn.Module, hidden_BTD: Tensor) -> None:
            assert isinstance(layer, EncoderLayer)
            attention_input_BTD = layer.before_attention(hidden_BTD)
            probabilities.append(layer.attention.probabilities(attention_input_BTD, rows.mask_B11T, *shared))
            hidden_states.append(hidden_BTD)

        with plain_path():
            last_BTD = encoder.walk(embedded_BTD, mask_BT, rows, visit=visit)
        return [*hidden_states, encoder.norm(last_BTD)], probabilities


class BodyModel(nn.Module):
    """The body and its sizes; each kind of model adds its heads."""

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.architecture = architecture
        self.body = Body(architecture)


def encoders(model: nn.Module) -> Iterator[Encoder]:
    """All encoders in a model: one, or two if it has a generator."""
    return (module for module in model.modules() if isinstance(module, Encoder))


def first_tokens(ids_BT: Tensor) -> Tensor:
    """The flat positions of the first tokens, whose hidden states represent the rows: int64 [B]."""
    return torch.arange(ids_BT.shape[0], device=ids_BT.device) * ids_BT.shape[1]


def mean(hidden_BTD: Tensor, mask_BT: Tensor | None) -> Tensor:
    """The mean over the real tokens of each row, or 0 if a row has none: [B, D]. `mask_BT` as in `Body`."""
    if mask_BT is None:
        return hidden_BTD.mean(dim=1)
    mask_BT = mask_BT.to(hidden_BTD.device)
    number_B1 = mask_BT.sum(dim=1, keepdim=True).clamp_min(1)
    return (hidden_BTD * mask_BT[:, :, None]).sum(dim=1) / number_B1


@replaceable
def lay_out(hidden_BTD: Tensor, mask_BT: Tensor | None, selected_K: Tensor | None) -> Rows:
    """The places of the tokens of `hidden_BTD` in the layers, with the arguments of `Encoder.forward`."""
    return Rows(attention_mask(mask_BT, hidden_BTD), selected_K)


def attention_mask(mask_BT: Tensor | None, like: Tensor) -> Tensor | None:
    """The mask_B11T of a mask_BT, on the device of `like`."""
    return None if mask_BT is None else mask_BT.to(like.device, non_blocking=True)[:, None, None, :]


def _narrow(hidden_BTD: Tensor) -> Tensor:
    """Cast the first layer's input to 16 bits in mixed precision, which saves casts between layers. The
    embeddings keep fp32, because the gradient of a frequent word is a sum of hundreds."""
    device = hidden_BTD.device.type
    return (
        hidden_BTD.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else hidden_BTD
    )
