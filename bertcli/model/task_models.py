"""The body with a head for a labeled task, or without one: labels of rows or tokens, answers, vectors."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import bertcli.model.fast  # noqa: F401 - its functions replace plain ones
from bertcli.config.task import PoolingMode
from bertcli.families.family import Head, HeadKind
from bertcli.families.registry import FAMILIES
from bertcli.model.architecture import Architecture
from bertcli.model.encoder import BodyModel, first_tokens, mean
from bertcli.model.heads import PairHead, Pooler, RtdHead
from bertcli.model.init import initialize
from bertcli.model.layer import Dropout, EncoderLayer
from bertcli.system.errors import UserError


def pool(hidden_BTD: Tensor, mask_BT: Tensor | None, mode: PoolingMode) -> Tensor:
    """The vectors_BD: the mean or maximum over a row's real tokens, or the first token's hidden state.

    `mask_BT` (bool) is True at real tokens, including special tokens; None means no padding.
    """
    if mode == "cls":
        return hidden_BTD[:, 0]
    if mode == "mean":
        return mean(hidden_BTD, mask_BT)
    if mask_BT is None:
        return hidden_BTD.amax(dim=1)
    return hidden_BTD.masked_fill(~mask_BT.to(hidden_BTD.device)[:, :, None], -torch.inf).amax(dim=1)


class VectorModel(BodyModel):
    """The body with pooling to one vector per row; `normalize` scales vectors to length 1."""

    def __init__(
        self, architecture: Architecture, mode: PoolingMode = "mean", normalize: bool = False
    ) -> None:
        super().__init__(architecture)
        self.mode: PoolingMode = mode
        self.normalize = normalize
        initialize(self, architecture.init_std)

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """The vectors_BD in fp32; the arguments are those of `Body`."""
        if self.mode == "cls":
            vectors_BD = self.body(ids_BT, segments_BT, mask_BT, first_tokens(ids_BT)).float()
        else:
            vectors_BD = pool(self.body(ids_BT, segments_BT, mask_BT).float(), mask_BT, self.mode)
        return F.normalize(vectors_BD, dim=-1) if self.normalize else vectors_BD


@dataclass(frozen=True)
class Standardization:
    """The meaning of the output of a regression's last layer: (number - mean) / scale.

    Training standardizes its numbers, so that the loss and the gradient do not depend on their scale.
    """

    mean: float = 0.0
    scale: float = 1.0


AS_THEY_ARE = Standardization()
"""The standardization of model folders: the output is the number itself, as every reader expects."""


def restandardized(
    weights: Mapping[str, Tensor], before: Standardization, after: Standardization
) -> dict[str, Tensor]:
    """The weights of a head that gives the same numbers in another standardization.

    Equal standardizations change no bit.
    """
    changed = dict(weights)
    if before != after and weights:
        factor = before.scale / after.scale
        shift = (before.mean - after.mean) / after.scale
        weight, bias = (weights[f"classifier.{name}"].double() * factor for name in ("weight", "bias"))
        changed["classifier.weight"], changed["classifier.bias"] = weight.float(), (bias + shift).float()
    return changed


class HeadModel(BodyModel):
    """The body with a task's head: [pooler,] dropout, and the dense layer `output`; freshly initialized."""

    output = "classifier"
    classifier: nn.Linear
    """The last layer, unless `output` names another one."""

    def __init__(self, architecture: Architecture, num_outputs: int, head: Head) -> None:
        super().__init__(architecture)
        self.pooler = Pooler(architecture, head) if head.dense else nn.Identity()
        self.dropout = Dropout(getattr(architecture, head.dropout) if head.dropout else 0.0)
        self.add_module(self.output, nn.Linear(architecture.hidden, num_outputs))
        initialize(self, architecture.init_std)

    def logits(self, hidden: Tensor) -> Tensor:
        """Apply the head to each hidden state: [..., D] -> [..., C]."""
        return getattr(self, self.output)(self.dropout(self.pooler(hidden)))


class SequenceModel(HeadModel):
    """One vector of logits per row: pooled first token (or mean of the tokens, `Architecture.pooling`),
    dropout, dense (Devlin et al. 2019, section 4.1).

    Choices have one logit per row (section 4.4).
    """

    def forward(
        self,
        ids_BT: Tensor,
        segments_BT: Tensor,
        mask_BT: Tensor | None = None,
        with_vectors: bool = False,
    ) -> Tensor:
        """The logits_BC; the first arguments are those of `Body`.

        `with_vectors`: [B, C + D], with the vector that the last layer reads, before dropout.
        """
        if self.architecture.pooling == "mean":
            read_BD = mean(self.body(ids_BT, segments_BT, mask_BT), mask_BT)
        else:
            read_BD = self.body(ids_BT, segments_BT, mask_BT, first_tokens(ids_BT))
        if not with_vectors:
            return self.logits(read_BD)
        pooled_BD = self.pooler(read_BD)
        return torch.cat([getattr(self, self.output)(self.dropout(pooled_BD)), pooled_BD], dim=-1)


class TokenModel(HeadModel):
    """One vector of logits per token (Devlin et al. 2019, section 5.3)."""

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """The logits_BTC; the arguments are those of `Body`."""
        return self.logits(self.body(ids_BT, segments_BT, mask_BT))


class SpanModel(TokenModel):
    """Two logits per token, for the start and the end of the answer (Devlin et al. 2019, section 4.2)."""

    output = "qa_outputs"


class PooledModel(BodyModel):
    """The body alone, or with a pooler, for sentence vectors; freshly initialized.

    `pair_head`, which reads the pooler, and `rtd_head` serve folders with no other head.
    """

    def __init__(
        self, architecture: Architecture, pooler: bool, pair_head: bool = False, rtd_head: bool = False
    ) -> None:
        super().__init__(architecture)
        self.pooler = Pooler(architecture) if pooler else None
        self.pair_head = PairHead(architecture) if pair_head else None
        self.rtd_head = RtdHead(architecture) if rtd_head else None
        initialize(self, architecture.init_std)

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None = None) -> Tensor:
        """The hidden_BTD; the arguments are those of `Body`. `pooler(hidden_BTD[:, 0])` gives pooled_BD."""
        return self.body(ids_BT, segments_BT, mask_BT)


MEAN_WEIGHT = 30.0
"""The weight of the mean beside the token itself in the layer of `append_mean_layer`."""
POOLED = 0.25
"""The factor of its output, whose variance is 1, before the tanh of the pooler."""

TaskModel = SequenceModel | TokenModel | SpanModel | VectorModel


def build_task_model(kind: HeadKind | None, architecture: Architecture, num_outputs: int = 1) -> TaskModel:
    """Build the body with the head that its family has in transformers, freshly initialized.

    Args:
        kind: None: no head; the model gives vectors.
        num_outputs: logits of a row or of a token; spans always have two.
    """
    if kind is None:
        return VectorModel(architecture)
    head = FAMILIES[architecture.family].heads[kind]
    if kind == "spans":
        return SpanModel(architecture, 2, head)
    return (TokenModel if kind == "tokens" else SequenceModel)(architecture, num_outputs, head)


def evenly_spaced(layers: int, kept: int) -> list[int]:
    """The numbers of the layers to keep, with the first and the last: 0, 2, 4, 7, 9, 11 for six of twelve
    (Sanh et al. 2019)."""
    return [round(number * (layers - 1) / max(1, kept - 1)) for number in range(kept)]


def keep_layers(model: TaskModel, number: int) -> None:
    """Keep `number` evenly spaced layers of the model.

    Raises:
        UserError: the model has fewer layers; its layers share weights in several groups.
    """
    sizes, encoder = model.architecture, model.body.encoder
    if number > sizes.layers:
        raise UserError(f"training.keep_layers: {number}, but the model has only {sizes.layers} layers")
    if sizes.layer_groups not in (None, 1):
        raise UserError(
            f"training.keep_layers: the layers of this model share weights in {sizes.layer_groups} groups, "
            "which cannot be thinned out; leave it out"
        )
    kept = evenly_spaced(sizes.layers, number)
    if sizes.layer_groups is None:
        encoder.layers = nn.ModuleList(encoder.layers[layer] for layer in kept)
    local = tuple(sizes.local_layers[layer] for layer in kept) if sizes.local_layers else ()
    model.architecture = replace(sizes, layers=number, local_layers=local)
    encoder.order = model.architecture.layer_order


def may_choose_pooling(model: nn.Module) -> bool:
    """True if `choose_pooling` can change the model: a ModernBERT, by a setting; another one if its layers
    have weights of their own and norms after the sum, and its head begins with a dense layer and tanh."""
    if not isinstance(model, SequenceModel):
        return False
    if model.architecture.pre_norm:
        return True
    pooler: Any = model.pooler
    has_tanh = isinstance(getattr(pooler, "dense", None), nn.Linear) and pooler.activation is torch.tanh
    is_plain = type(model.body.encoder.layers[-1]) is EncoderLayer
    return has_tanh and is_plain and model.architecture.layer_groups is None


def choose_pooling(model: SequenceModel, pooling: Literal["cls", "mean"]) -> None:
    """Let a new head read the first token or the mean of the tokens; the model is one that
    `may_choose_pooling`."""
    if model.architecture.pre_norm:
        model.architecture = replace(model.architecture, pooling=pooling)
    elif pooling == "mean":
        append_mean_layer(model)


def append_mean_layer(model: SequenceModel) -> None:
    """Add a last layer by which the head reads the mean of the hidden states, not the first token's alone.

    A classification reads the first token, whereas most models of sentence vectors were trained for means.
    Queries and keys of the new layer are 0, so every token attends to all tokens alike; values pass as they
    are; the sum with the token itself is small beside `MEAN_WEIGHT` times the mean; the feed-forward network
    adds nothing. The pooler passes `POOLED` times that on, where its tanh is nearly linear. All of it is
    trained on, and the folder is one of the same family with one layer more.
    """
    sizes, encoder = model.architecture, model.body.encoder
    pooler: Any = model.pooler
    layer: Any = copy.deepcopy(encoder.layers[-1])
    attention, identity = layer.attention, torch.eye(sizes.hidden)
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            parameter.fill_(1.0 if name.endswith("norm.weight") else 0.0)
        attention.value.weight.copy_(identity)
        attention.output.weight.copy_(MEAN_WEIGHT * identity)
        pooler.dense.weight.copy_(POOLED * identity)
        if pooler.dense.bias is not None:
            pooler.dense.bias.zero_()
    encoder.layers.append(layer)
    model.architecture = replace(sizes, layers=sizes.layers + 1)
    encoder.order = model.architecture.layer_order
