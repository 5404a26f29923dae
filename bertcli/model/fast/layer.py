"""A layer on packed rows; the last layer computes only selected tokens. It replaces `EncoderLayer.forward`,
and with it `Attention.forward`."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.model.fast.packing import Packing
from bertcli.model.layer import Attention, EncoderLayer, Heads
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
    attention = layer.attention
    input_RD = layer.before_attention(hidden_RD)
    projections = [attention.query, attention.key, attention.value]
    # The queries, Q rows, are one of three: all tokens of the layer (R rows); the queries of the decoder (R);
    # or only the selected tokens, in a packing of their own (K). R rows are narrowed to K after attention.
    query_packing, querying_QD, residual_QD = packing, input_RD, hidden_RD
    if queries_BTD is not None:
        querying_QD = residual_QD = queries_BTD
    elif packing.queries is not None and attention.any_queries and not torch.compiler.is_compiling():
        query_packing, querying_QD = packing.queries, packing.narrow(input_RD)
        residual_QD = querying_QD if input_RD is hidden_RD else packing.narrow(hidden_RD)
    if querying_QD is input_RD:
        heads = _heads(attention, input_RD, packing, projections=projections)
    else:
        heads = _heads(attention, querying_QD, query_packing, projections=projections[:1])
        heads += _heads(attention, input_RD, packing, projections=projections[1:])
    context_BNWH = attention.attend(Heads(*heads), packing.mask_B11T, *shared)
    context_QD = query_packing.pack(attention.join_heads(context_BNWH))
    if query_packing is not packing:
        return layer.combine(residual_QD, attention.output(context_QD))
    residual_KD, context_KD = packing.narrow(residual_QD), packing.narrow(context_QD)
    return layer.combine(residual_KD, attention.output(context_KD))


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
