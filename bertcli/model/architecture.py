"""The sizes and rates of an encoder: all values that a model is built from."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal


@dataclass(frozen=True)
class Relative:
    """Disentangled attention, `bertcli.model.disentangled`.

    Attributes:
        content_to_position, position_to_content: true if this term is added to the scores.
        max_distance: largest distance, in tokens; larger ones count as this one.
        buckets: rows of the table for distances to one side; far distances share a row (`distance_rows`).
            None: each distance has its own row.
        shared_projections: true if positions go through the projections of contents.
        normalized_table: true if the table has a LayerNorm.
        key_bias: true if keys have a bias, those of positions too.
    """

    content_to_position: bool
    position_to_content: bool
    max_distance: int
    buckets: int | None = None
    shared_projections: bool = False
    normalized_table: bool = False
    key_bias: bool = True

    @property
    def span(self) -> int:
        """Half the rows of the table."""
        return self.buckets or self.max_distance

    @property
    def terms(self) -> int:
        """Number of terms in a score: contents alone, and the terms with positions."""
        return 1 + self.content_to_position + self.position_to_content


@dataclass(frozen=True)
class Convolution:
    """A convolution over the embeddings, added to the first layer's output (`bertcli.model.encoder`).

    Attributes:
        width: width in tokens, an odd number.
        groups: number of groups of channels that are convolved separately.
    """

    width: int
    groups: int
    activation: Literal["gelu", "tanh"]


@dataclass(frozen=True)
class Architecture:
    """The sizes of one encoder (Devlin et al. 2019, section 3). Equal values give the same parameters.

    Raises `ValueError` if the number of heads does not divide the hidden size.
    """

    vocab_size: int
    hidden: int
    layers: int
    heads: int
    feed_forward: int
    max_positions: int
    """The number of rows of the position table."""
    num_segments: int = 2
    """The number of segments; 0 means no segment embedding."""
    position_offset: int = 0
    """The index of a row's first token in the position table; lower indices are not used."""
    position_table: bool = True
    """True if there is a position table, whose learned positions are added to the embeddings."""
    rotary_bases: tuple[float, float] | None = None
    """The bases of the angles of rotary positions, in layers that read full rows and in local layers (Su et
    al. 2021, section 3.2.2); None means no rotary positions."""
    local_layers: tuple[bool, ...] = ()
    """One value for each layer, with rotary positions: true if it is local."""
    window: int = 64
    """The number of tokens to each side that a local layer attends to."""
    pre_norm: bool = False
    """True if norms are before attention and feed-forward, and the latter has a gate (Warner et al. 2024,
    section 2.1)."""
    biases: bool = True
    """True if dense layers and norms have biases; task outputs and the decoder always have one."""
    pooling: Literal["cls", "mean"] = "cls"
    """The input of a sequence task's head: the first token, or the mean of the real tokens."""
    relative: Relative | None = None
    """The relative positions in attention; None means no relative positions."""
    mask_decoder: bool = False
    """True if the MLM head also reads absolute positions (He et al. 2021, section 3.2)."""
    convolution: Convolution | None = None
    embedding: int | None = None
    """The width of the embeddings, which a dense layer widens to `hidden` (Lan et al. 2020, section 3.1);
    None means the width `hidden`."""
    layer_groups: int | None = None
    """The number of groups of layers that share weights (Lan et al. 2020, section 3.1); None means that each
    layer has its own."""
    activation: Literal["gelu", "gelu_tanh"] = "gelu"
    """The activation in the feed-forward network and the MLM head."""
    dropout: float = 0.1
    """The dropout rate of hidden states: after the embeddings and after each sub-layer."""
    attention_dropout: float = 0.1
    """The dropout rate of attention probabilities."""
    attention_output_dropout: float | None = None
    """The dropout rate after attention's output projection; None means the rate `dropout`."""
    feed_forward_dropout: float = 0.0
    """The dropout rate inside a gated feed-forward network."""
    classifier_dropout: float | None = None
    """The dropout rate of the input of a task's head; None means the rate `dropout`."""
    pooler_dropout: float = 0.0
    """The dropout rate of the input of a task's dense layer, in families with a rate for it."""
    question_dropout: float = 0.0
    """The dropout rate of the input of a question answering head, in families whose head has dropout."""
    choice_dropout: float = 0.1
    """The dropout rate of the input of a multiple choice head, in families with their own rate for it."""
    layer_norm_eps: float = 1e-12
    init_std: float = 0.02
    """The standard deviation of the normal distribution before truncation (`bertcli.model.init`)."""
    generator: Architecture | None = None
    """The architecture of the model that replaces words in this one's rows (`bertcli.model.pretraining`)."""
    family: str = "bert"
    """The `model_type` in `config.json` of its folders (`bertcli.families`)."""

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise ValueError(
                f"heads must divide hidden: {self.hidden} / {self.heads} leaves {self.hidden % self.heads}"
            )

    def with_dropout(self, rate: float | None) -> Architecture:
        """The same sizes with this rate of dropout for hidden states and attention; None: with their own."""
        return self if rate is None else replace(self, dropout=rate, attention_dropout=rate)

    def with_positions(self, usable: int) -> Architecture:
        """The same sizes, with this number of tokens in the longest row."""
        return replace(self, max_positions=usable + self.position_offset)

    def with_rotary_base(self, base: float | None) -> Architecture:
        """The same sizes, with this base of rotary positions in layers that read full rows; None: their
        own."""
        if base is None:
            return self
        assert self.rotary_bases is not None
        return replace(self, rotary_bases=(base, self.rotary_bases[1]))

    @property
    def usable_positions(self) -> int:
        """The maximum number of tokens in a row."""
        return self.max_positions - self.position_offset

    @property
    def layer_order(self) -> list[int]:
        """The index of each layer's weights, in the order of the layers."""
        groups = self.layer_groups or self.layers
        return [int(layer / (self.layers / groups)) for layer in range(self.layers)]

    @property
    def head_dropout(self) -> float:
        """The dropout rate before a task's head."""
        return self.dropout if self.classifier_dropout is None else self.classifier_dropout

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads


def first_std(hidden: int) -> float:
    """The standard deviation of all weights before truncation: that of BERT-base at its width, and larger in
    narrower models, so that sums over the width have the same size."""
    return float(f"{0.02 * math.sqrt(768 / hidden):.2g}")


def forward_flops(architecture: Architecture, length: float, predicted: float) -> float:
    """The operations per token in matrix products; a multiplication and its addition count as two.

    The number is 2 L (4 D^2 + 2 D F) + 4 L T D + p 2 (D E + E V): projections, attention over rows of T
    tokens, and the MLM head at the share p of tokens whose word is predicted (0 for a labeled task). E is the
    width of the embeddings. A gate adds 2 D F to a layer; a local layer reads its window instead of T tokens;
    each term of relative positions adds 2 L T D; a mask decoder counts as one more layer. A model with a
    generator predicts no words itself: the operations of both are added.

    Dropout, LayerNorm, softmax and the optimizer are not counted, as in Chowdhery et al. 2022, appendix B.
    The last layer is counted in full, although `model.fast.layer` skips a part of it, so that programs can be
    compared.

    Args:
        length: the number of real tokens of a row.
        predicted: the share p.
    """
    if architecture.generator is not None:
        alone = forward_flops(replace(architecture, generator=None), length, 0.0)
        return alone + forward_flops(architecture.generator, length, predicted)
    hidden, width = architecture.hidden, architecture.embedding or architecture.hidden
    matrices = 3 if architecture.pre_norm else 2
    projections = 2 * (4 * hidden**2 + matrices * hidden * architecture.feed_forward)
    num_local = sum(architecture.local_layers)
    in_window = min(length, 2 * architecture.window + 1)
    layers = architecture.layers + architecture.mask_decoder
    read = (layers - num_local) * length + num_local * in_window
    scores = 1 if architecture.relative is None else architecture.relative.terms
    head = 2 * (hidden * width + width * architecture.vocab_size)
    return layers * projections + 2 * (1 + scores) * hidden * read + predicted * head


def training_flops(architecture: Architecture, length: float, predicted: float) -> float:
    """The operations of `forward_flops` and of the backward pass, which needs twice as many. Recomputation by
    activation checkpointing is not counted, because it trains nothing more."""
    return 3 * forward_flops(architecture, length, predicted)
