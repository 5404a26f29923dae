"""The initial value of every parameter, and the expected first loss."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from bertcli.model.architecture import Architecture
from bertcli.model.encoder import Body
from bertcli.model.heads import MlmHead
from bertcli.model.layer import Attention

TRUNCATION = 2.0
"""Standard deviations beyond which the original's `tf.truncated_normal_initializer` draws again."""


@torch.no_grad()
def initialize(model: nn.Module, std: float, truncated: bool = True) -> None:
    """Initialize every parameter of `model` from torch's own generator.

    | module      | parameter | initial value                                   |
    |-------------|-----------|-------------------------------------------------|
    | Embedding   | weight    | normal(0, std) truncated at 2 std, every row    |
    | Linear      | weight    | normal(0, std) truncated at 2 std               |
    | Linear      | bias      | 0                                               |
    | Conv1d      | weight    | normal(0, std) truncated at 2 std               |
    | Conv1d      | bias      | 0                                               |
    | LayerNorm   | weight    | 1                                               |
    | LayerNorm   | bias      | 0                                               |
    | MlmHead     | bias      | 0                                               |

    The values are those of the original (google-research/bert, `modeling.py`), also for the row of [PAD].

    Args:
        truncated: False for a new head on a trained body, as in transformers, with which the usual learning
            rates were found. Truncation makes weights, and the body's first gradients, 12 % smaller.
    """
    for module in model.modules():
        if isinstance(module, nn.Embedding | nn.Linear | nn.Conv1d):
            bound = TRUNCATION * std  # the default bounds of trunc_normal_ are absolute, without effect here
            if truncated:
                nn.init.trunc_normal_(module.weight, std=std, a=-bound, b=bound)
            else:
                nn.init.normal_(module.weight, std=std)
        if isinstance(module, nn.LayerNorm):
            nn.init.ones_(module.weight)
        if isinstance(module, nn.Linear | nn.Conv1d | nn.LayerNorm | MlmHead) and module.bias is not None:
            nn.init.zeros_(module.bias)


@torch.no_grad()
def initialize_outputs(model: nn.Module, architecture: Architecture) -> None:
    """Initialize the output projections of pre-norm layers and the MLM head's dense layer again, with a
    standard deviation of `init_std` / sqrt(2 * layers) (Warner et al. 2024, appendix B)."""
    std = architecture.init_std / math.sqrt(2 * architecture.layers)
    for name, module in model.named_modules():
        if name.endswith(("attention.output", "feed_forward.contract", "mlm_head.dense")):
            initialize(module, std)


def initialize_head(head: nn.Module, architecture: Architecture, is_output: bool) -> None:
    """Initialize a part of a new head on a trained body, as transformers does for the family.

    `is_output` is true for the head's last layer. In families with pre-norm layers, weights are truncated,
    with a standard deviation of 1 / sqrt(D) in the last layer and `init_std` / sqrt(2 * layers) elsewhere.
    """
    if not architecture.pre_norm:
        initialize(head, architecture.init_std, truncated=False)
    elif is_output:
        initialize(head, architecture.hidden**-0.5)
    else:
        initialize(head, architecture.init_std / math.sqrt(2 * architecture.layers))


POSITIONS = 1.4
"""Deviation of the positions, in units of that of words and segments."""
SCORE = 6.5
"""Mean score of the neighbor in attention, in nats above other tokens: it gets some 80 % of the weight."""


@torch.no_grad()
def look_at_neighbors(model: nn.Module, std: float) -> None:
    """Give a new model first weights by which its first layer looks at each token's neighbors at once.

    With published first weights, an encoder of learned positions knows word frequencies alone for hundreds of
    steps or more, until it finds out that neighbors tell more. Here position t begins as sines and cosines of
    t (Vaswani et al. 2017, section 3.5), so that one rotation leads from any position to its neighbor's. The
    queries of the first layer take this rotation, the keys do not. Its heads look at distances -1, 1, -2, 2,
    and so on.
    Bodies without a position table, or with another attention than BERT's, keep their weights.

    Args:
        std: the standard deviation before truncation with which `model` was initialized.
    """
    for body in model.modules():
        if isinstance(body, Body) and isinstance(body.embeddings.position, nn.Embedding):
            attention = body.encoder.layers[0].attention
            if type(attention) is Attention:
                table = body.embeddings.position.weight
                table.copy_(wave(len(table), table.shape[1], std=POSITIONS * std).to(table))
                widen = body.embeddings.widen
                if widen is not None:  # it is inverted below, and the inverse of a random square one is huge
                    nn.init.orthogonal_(widen.weight, std * math.sqrt(widen.out_features))
                _turn_queries(attention, widen)


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
    if not pairs:  # a head of one feature cannot turn
        return
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


def truncated_std(std: float) -> float:
    """The true standard deviation of normal(0, std) truncated at 2 std: 0.8796 std.

    Var = 1 - 2 t phi(t) / (Phi(t) - Phi(-t)) at unit std (Johnson, Kotz and Balakrishnan 1994, 13.10.1).
    """
    density = math.exp(-(TRUNCATION**2) / 2) / math.sqrt(2 * math.pi)
    inside = math.erf(TRUNCATION / math.sqrt(2))
    return std * math.sqrt(1 - 2 * TRUNCATION * density / inside)


def expected_first_mlm_loss(architecture: Architecture) -> float:
    """The MLM loss (nats) of a fresh model: ln V + E s^2 / 2, where s is the true deviation of the weights.

    The head ends in a LayerNorm, so its output has squared norm E, the width of the embeddings, and each
    logit is normal(0, E s^2). The mean of ln sum exp over V such logits is ln V + E s^2 / 2, and the mean of
    the right logit is 0.
    """
    variance = (architecture.embedding or architecture.hidden) * truncated_std(architecture.init_std) ** 2
    return math.log(architecture.vocab_size) + variance / 2


@contextmanager
def sizes_alone() -> Iterator[None]:
    """Give models that are built inside parameters on the meta device: shapes without values."""
    with torch.device("meta"), _Uninitialized():
        yield


class _Uninitialized(TorchFunctionMode):
    """A mode that skips initialization, for which torch would import its compiler on the meta device."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(func, "__module__", None) == "torch.nn.init":
            return None
        return func(*args, **(kwargs or {}))
