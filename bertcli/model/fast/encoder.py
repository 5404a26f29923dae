"""The encoder on packed rows, with the last layer for selected tokens alone: replaces `Encoder.forward` and,
on packed rows, `EncoderLayer.forward` and `Attention.forward`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.model.attention import Attention
from bertcli.model.fast.attention import is_written_out
from bertcli.model.fast.packing import Packing, take
from bertcli.model.fast.switch import is_on
from bertcli.model.mask_decoder import TIMES

if TYPE_CHECKING:
    from bertcli.model.encoder import Encoder
    from bertcli.model.layer import EncoderLayer


@dataclass(frozen=True)
class Selected:
    """The tokens whose last hidden states are needed.

    Attributes:
        numbers_K: int64, their indices among the R packed tokens.
        packing: of their queries alone, row by row; None: attention is computed for all queries.
    """

    numbers_K: Tensor
    packing: Packing | None


def is_faster(*inputs: Any, **named: Any) -> bool:
    """Whether `encode` replaces `Encoder.forward`."""
    return is_on("packing") or is_on("last_layer")


def encode(
    encoder: Encoder,
    hidden_BTD: Tensor,
    mask_BT: Tensor | None,
    selected_K: Tensor | None = None,
    positions_TD: Tensor | None = None,
) -> Tensor:
    """As `Encoder.forward`. If tokens are selected, most of the last layer is skipped for the others, which
    are five of six in pretraining."""
    packing = Packing.of(mask_BT, hidden_BTD)
    hidden_RD, shared = packing.pack(hidden_BTD), encoder.shared()
    beside_BTD = encoder.beside_first(hidden_BTD, mask_BT)
    beside_RD = None if beside_BTD is None else packing.pack(beside_BTD)
    *lower, last = encoder.in_order()
    for layer in lower:
        hidden_RD = encoder.join(encoder.run(layer, hidden_RD, packing, None, *shared), beside_RD)
        beside_RD = None
    if positions_TD is not None:
        positions_RD = packing.pack(positions_TD.to(hidden_RD.dtype).expand_as(hidden_BTD))
        return _decode(encoder, hidden_RD, packing, positions_RD=positions_RD, selected_K=selected_K)
    if selected_K is not None and is_on("last_layer") and beside_RD is None:
        selected = _select(selected_K, packing, hidden_BTD)
        return encoder.norm(encoder.run(last, hidden_RD, packing, selected, *shared))
    hidden_RD = encoder.join(encoder.run(last, hidden_RD, packing, None, *shared), beside_RD)
    if selected_K is None:
        return packing.unpack(encoder.norm(hidden_RD))
    return encoder.norm(take(hidden_RD, packing.find(selected_K)))


def _decode(
    encoder: Encoder,
    hidden_RD: Tensor,
    packing: Packing,
    positions_RD: Tensor,
    selected_K: Tensor | None,
) -> Tensor:
    """The last layer as `MaskDecoder` says, from the output of the layers below it."""
    selected = None if selected_K is None else Selected(packing.find(selected_K), None)
    last, shared, queries_RD = encoder.in_order()[-1], encoder.shared(), hidden_RD + positions_RD
    for _ in range(TIMES - 1):
        decoded = encoder.run(last, hidden_RD, packing, selected, *shared, queries_RD=queries_RD)
        # A token that is selected twice gets the gradient twice: those that fill `round_masked` have none.
        queries_RD = decoded if selected is None else queries_RD.index_copy(0, selected.numbers_K, decoded)
    decoded = encoder.run(last, hidden_RD, packing, selected, *shared, queries_RD=queries_RD)
    return packing.unpack(decoded) if selected is None else decoded


def _select(selected_K: Tensor, packing: Packing, hidden_BTD: Tensor) -> Selected:
    """Separate queries are faster with explicit attention; on a GPU, counting them would wait for it."""
    numbers_K, (num_rows, length) = packing.find(selected_K), packing.shape
    if not is_written_out(hidden_BTD) or not len(selected_K):
        return Selected(numbers_K, None)
    return Selected(numbers_K, Packing.side_by_side(selected_K // length, num_rows))


def is_packed(
    layer: EncoderLayer, hidden: Tensor, rows: Packing | Tensor | None, *more: Any, **named: Any
) -> bool:
    """Whether `run_layer` replaces `EncoderLayer.forward`."""
    return isinstance(rows, Packing)


def run_layer(
    layer: EncoderLayer,
    hidden_RD: Tensor,
    packing: Packing,
    selected: Selected | None,
    *shared: Tensor,
    queries_RD: Tensor | None = None,
) -> Tensor:
    """As `EncoderLayer.forward`: [R, D] -> [R, D], or [K, D] of the selected tokens.

    The other tokens are only attended to.
    """
    input_RD = layer.before_attention(hidden_RD)
    if queries_RD is not None:
        return _run_for_queries(
            layer, input_RD, queries_RD, packing=packing, selected=selected, shared=shared
        )
    querying_KD = input_RD if selected is None else take(input_RD, selected.numbers_K)
    if input_RD is hidden_RD:
        residual_KD = querying_KD
    else:
        residual_KD = hidden_RD if selected is None else take(hidden_RD, selected.numbers_K)
    attended_KD = attend_packed(
        layer.attention, querying_KD, input_RD, packing=packing, selected=selected, shared=shared
    )
    return layer.combine(residual_KD, attended_KD)


def _run_for_queries(
    layer: EncoderLayer,
    hidden_RD: Tensor,
    queries_RD: Tensor,
    packing: Packing,
    selected: Selected | None,
    shared: tuple[Tensor, ...],
) -> Tensor:
    """`run_layer` where `queries_RD` read the tokens."""
    attention = layer.attention
    (query_BNTH,) = _heads(attention, queries_RD, packing, projections=[attention.query])
    key_BNTH, value_BNTH = _heads(attention, hidden_RD, packing, projections=[attention.key, attention.value])
    context_BNTH = attention.attend(query_BNTH, key_BNTH, value_BNTH, *shared, mask_B11T=packing.mask_B11T)
    context_KD = packing.pack(attention.join_heads(context_BNTH))
    if selected is not None:
        queries_RD, context_KD = (take(each, selected.numbers_K) for each in (queries_RD, context_KD))
    return layer.combine(queries_RD, attention.output(context_KD))


def attend_packed(
    attention: Attention,
    querying_KD: Tensor,
    hidden_RD: Tensor,
    packing: Packing,
    selected: Selected | None,
    shared: tuple[Tensor, ...],
) -> Tensor:
    """As `Attention.forward`: [R, D] -> [R, D], or [K, D] of the selected tokens (`querying_KD`)."""
    queries = None if selected is None or torch.compiler.is_compiling() else selected.packing
    if queries is None or not attention.any_queries:
        query_BNTH, key_BNTH, value_BNTH = _heads(
            attention, hidden_RD, packing, projections=[attention.query, attention.key, attention.value]
        )
        context_BNTH = attention.attend(
            query_BNTH, key_BNTH, value_BNTH, *shared, mask_B11T=packing.mask_B11T
        )
        context_KD = packing.pack(attention.join_heads(context_BNTH))
        if selected is not None:
            context_KD = take(context_KD, selected.numbers_K)
    else:
        (query_BNWH,) = _heads(attention, querying_KD, queries, projections=[attention.query])
        key_BNTH, value_BNTH = _heads(
            attention, hidden_RD, packing, projections=[attention.key, attention.value]
        )
        context_BNWH = attention.attend(
            query_BNWH, key_BNTH, value_BNTH, *shared, mask_B11T=packing.mask_B11T
        )
        context_KD = queries.pack(attention.join_heads(context_BNWH))
    return attention.output(context_KD)


def _heads(
    attention: Attention, hidden_RD: Tensor, packing: Packing, projections: list[nn.Linear]
) -> tuple[Tensor, ...]:
    """[R, D] -> [B, N, T, H] of each projection, all of them by one product."""
    weight_ED = torch.cat([projection.weight for projection in projections])
    biases = [projection.bias for projection in projections]
    none_D = weight_ED.new_zeros(len(weight_ED) // len(projections))
    given = [none_D if bias is None else bias for bias in biases]
    bias_E = None if all(bias is None for bias in biases) else torch.cat(given)
    projected_BTE = packing.unpack(F.linear(hidden_RD, weight_ED, bias_E))
    by_head = projected_BTE.unflatten(-1, (len(projections), -1, attention.head_size))
    return by_head.permute(2, 0, 3, 1, 4).unbind()
