"""First weights by which the first layer looks at each token's neighbors from the first step on.

With published first weights an encoder of learned positions knows word frequencies alone for hundreds or
thousands of steps, until it finds out that neighbors tell more. Here it begins with that: position t is sines
and cosines of t (Vaswani et al. 2017, section 3.5), so that one rotation leads from any position to its
neighbor's. The queries of the first layer take this rotation, the keys do not. Like all weights, these are
learned further.
"""

import math

import torch
from torch import Tensor, nn

from bertcli.model.encoder import Body
from bertcli.model.layer import Attention

POSITIONS = 1.4
"""Deviation of the positions, in units of that of words and segments."""
SCORE = 6.5
"""Mean score of the neighbor in attention, in nats above other tokens: it gets some 80 % of the weight."""


@torch.no_grad()
def look_at_neighbors(model: nn.Module, std: float) -> None:
    """Give all bodies of a new model such weights, where positions are a table and attention is BERT's.

    The heads of the first layer look at distances -1, 1, -2, 2, ...

    Args:
        std: the standard deviation before truncation with which `model` was initialized.
    """
    for body in model.modules():
        if isinstance(body, Body) and isinstance(body.embeddings.position, nn.Embedding):
            attention = body.encoder.layers[0].attention
            if type(attention) is Attention:
                table = body.embeddings.position.weight
                table.copy_(wave(len(table), table.shape[1], std=POSITIONS * std).to(table))
                _turn_queries(attention, body.embeddings.widen)


def frequencies(width: int) -> Tensor:
    """The angle per position of each pair of features, in radians: evenly spread from 0 to pi, [width / 2].

    The products of two positions then cancel unless the positions are the same.
    """
    pairs = width // 2
    return math.pi * (torch.arange(pairs) + 0.5) / pairs


def wave(positions: int, width: int, std: float) -> Tensor:
    """The table [positions, width] of sines and cosines; the last feature of an odd width is 0."""
    angles_TF = torch.arange(positions)[:, None] * frequencies(width)
    table_TE = torch.stack([angles_TF.sin(), angles_TF.cos()], dim=-1).flatten(1)
    return nn.functional.pad(std * math.sqrt(2) * table_TE, (0, width % 2))


def _turn_queries(attention: Attention, widen: nn.Linear | None) -> None:
    """Add to queries and keys what reads positions, and to queries the rotation by each head's distance."""
    size, (hidden, inputs) = attention.head_size, attention.query.weight.shape
    width = inputs if widen is None else widen.in_features
    angles_F, pairs = frequencies(width), min(size, width) // 2
    query_DE, key_DE = torch.zeros(hidden, width), torch.zeros(hidden, width)
    for head in range(hidden // size):
        distance = (head // 2 + 1) * (-1 if head % 2 == 0 else 1)
        first = head * size + 2 * torch.arange(pairs)
        stride = len(angles_F) // pairs
        chosen = torch.arange(pairs) * stride + head % stride
        cosine, sine = (angles_F[chosen] * distance).cos(), (angles_F[chosen] * distance).sin()
        key_DE[first, 2 * chosen], key_DE[first + 1, 2 * chosen + 1] = torch.ones(2, pairs)
        query_DE[first, 2 * chosen], query_DE[first, 2 * chosen + 1] = cosine, sine
        query_DE[first + 1, 2 * chosen], query_DE[first + 1, 2 * chosen + 1] = -sine, cosine
    # After the embeddings' LayerNorm the positions have this share of the variance, 2 * share in each pair.
    share = POSITIONS**2 / (POSITIONS**2 + 2)
    scale = math.sqrt(SCORE * math.sqrt(size) / (2 * share * pairs))
    narrow = torch.eye(width) if widen is None else torch.linalg.pinv(widen.weight.float())
    attention.query.weight += (scale * query_DE @ narrow).to(attention.query.weight)
    attention.key.weight += (scale * key_DE @ narrow).to(attention.key.weight)
