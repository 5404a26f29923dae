"""A layer on packed rows; the last layer computes only selected tokens. It replaces `EncoderLayer.forward`,
and with it `Attention.forward`."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.model.fast.packing import Packing, take
from bertcli.model.layer import Attention, EncoderLayer
from bertcli.model.seam import replace


def run_layer(
    layer: EncoderLayer,
    hidden_RD: Tensor,
    packing: Packing,
    *shared: Tensor,
    queries_BTD: Tensor | None = None,
) -> Tensor:
    """Compute `EncoderLayer.forward`: [R, D] -> [R, D], or [K, D] for selected tokens. `queries_BTD` is also
    [R, D].

    If tokens are selected, most of the last layer is skipped for all others, which are five of six in
    pretraining: they are only attended to.
    """
    input_RD, selected = layer.before_attention(hidden_RD), packing.selected
    if queries_BTD is not None:
        return _run_for_queries(layer, input_RD, queries_BTD, packing=packing, shared=shared)
    querying_KD = input_RD if selected is None else take(input_RD, selected.numbers_K)
    if input_RD is hidden_RD:
        residual_KD = querying_KD
    else:
        residual_KD = hidden_RD if selected is None else take(hidden_RD, selected.numbers_K)
    attended_KD = attend_packed(layer.attention, querying_KD, input_RD, packing=packing, shared=shared)
    return layer.combine(residual_KD, attended_KD)


def _run_for_queries(
    layer: EncoderLayer,
    hidden_RD: Tensor,
    queries_RD: Tensor,
    packing: Packing,
    shared: tuple[Tensor, ...],
) -> Tensor:
    """Compute `run_layer` with `queries_RD` as the queries' input and residual."""
    attention = layer.attention
    (query_BNTH,) = _heads(attention, queries_RD, packing, projections=[attention.query])
    key_BNTH, value_BNTH = _heads(attention, hidden_RD, packing, projections=[attention.key, attention.value])
    context_BNTH = attention.attend(query_BNTH, key_BNTH, value_BNTH, packing.mask_B11T, *shared)
    context_KD = packing.pack(attention.join_heads(context_BNTH))
    if (selected := packing.selected) is not None:
        queries_RD, context_KD = (take(each, selected.numbers_K) for each in (queries_RD, context_KD))
    return layer.combine(queries_RD, attention.output(context_KD))


def attend_packed(
    attention: Attention,
    querying_KD: Tensor,
    hidden_RD: Tensor,
    packing: Packing,
    shared: tuple[Tensor, ...],
) -> Tensor:
    """Compute `Attention.forward`: [R, D] -> [R, D], or [K, D] for the selected tokens (`querying_KD`)."""
    selected, three = packing.selected, [attention.query, attention.key, attention.value]
    queries = None if selected is None or torch.compiler.is_compiling() else selected.packing
    if queries is None or not attention.any_queries:
        query_BNTH, key_BNTH, value_BNTH = _heads(attention, hidden_RD, packing, projections=three)
        context_BNTH = attention.attend(query_BNTH, key_BNTH, value_BNTH, packing.mask_B11T, *shared)
        context_KD = packing.pack(attention.join_heads(context_BNTH))
        if selected is not None:
            context_KD = take(context_KD, selected.numbers_K)
    else:
        (query_BNWH,) = _heads(attention, querying_KD, queries, projections=three[:1])
        key_BNTH, value_BNTH = _heads(attention, hidden_RD, packing, projections=three[1:])
        context_BNWH = attention.attend(query_BNWH, key_BNTH, value_BNTH, packing.mask_B11T, *shared)
        context_KD = queries.pack(attention.join_heads(context_BNWH))
    return attention.output(context_KD)


def _heads(
    attention: Attention, hidden_RD: Tensor, packing: Packing, projections: list[nn.Linear]
) -> tuple[Tensor, ...]:
    """Project [R, D] -> [B, N, T, H] for each projection, with one product for all of them."""
    weight_ED = torch.cat([projection.weight for projection in projections])
    biases = [projection.bias for projection in projections]
    none_D = weight_ED.new_zeros(len(weight_ED) // len(projections))
    given = [none_D if bias is None else bias for bias in biases]
    bias_E = None if all(bias is None for bias in biases) else torch.cat(given)
    projected_BTE = packing.unpack(F.linear(hidden_RD, weight_ED, bias_E))
    by_head = projected_BTE.unflatten(-1, (len(projections), -1, attention.head_size))
    return by_head.permute(2, 0, 3, 1, 4).unbind()


replace(
    EncoderLayer.forward, run_layer, when=lambda layer, hidden, rows, *_, **named: isinstance(rows, Packing)
)
