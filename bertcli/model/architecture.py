"""The sizes and rates of an encoder: all that is needed to build a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from bertcli.families.relative import Convolution, Relative


@dataclass(frozen=True)
class Architecture:
    """Sizes of one encoder (Devlin et al. 2019, section 3). The same values give the same parameters.

    Raises `ValueError` if the heads do not divide the hidden size.
    """

    vocab_size: int
    hidden: int
    layers: int
    heads: int
    feed_forward: int
    max_positions: int
    """Rows of the position table."""
    num_segments: int = 2
    """0: no segment embedding."""
    position_offset: int = 0
    """The index in the position table of a row's first token; lower ones are not used."""
    position_table: bool = True
    """Whether the position table exists: learned positions are added to the embeddings."""
    rotary_bases: tuple[float, float] | None = None
    """Bases of the angles of rotary positions, in layers that read full rows, and in local ones (Su et al.
    2021, section 3.2.2); None: no rotary positions."""
    local_layers: tuple[bool, ...] = ()
    """Whether each layer is local, with rotary positions."""
    window: int = 64
    """Tokens to each side that a local layer attends to."""
    pre_norm: bool = False
    """Norms before attention and feed-forward, and a gate in the latter (Warner et al. 2024, section 2.1)."""
    biases: bool = True
    """Whether dense layers and norms have biases; task outputs and the decoder always have one."""
    pooling: Literal["cls", "mean"] = "cls"
    """What the head of a sequence task reads: the first token, or the mean of the real tokens."""
    relative: Relative | None = None
    """Relative positions in attention; None: none."""
    mask_decoder: bool = False
    """Whether the MLM head reads absolute positions too (He et al. 2021, section 3.2)."""
    convolution: Convolution | None = None
    embedding: int | None = None
    """Width of the embeddings, which a dense layer widens to `hidden` (Lan et al. 2020, section 3.1); None:
    they have the width `hidden`."""
    layer_groups: int | None = None
    """Layers of a group share their weights (Lan et al. 2020, section 3.1); None: each has its own."""
    activation: Literal["gelu", "gelu_tanh"] = "gelu"
    """Of the feed-forward network and the MLM head."""
    dropout: float = 0.1
    """Of hidden states: after the embeddings and after each sub-layer."""
    attention_dropout: float = 0.1
    """Of attention probabilities."""
    attention_output_dropout: float | None = None
    """After attention's output projection; None: as `dropout`."""
    feed_forward_dropout: float = 0.0
    """Inside a gated feed-forward network."""
    classifier_dropout: float | None = None
    """Of the input of a task's head; None: as `dropout`."""
    pooler_dropout: float = 0.0
    """Of the input of a task's dense layer, in families with a rate for it."""
    question_dropout: float = 0.0
    """Of the input of a question answering head, in families whose head has dropout."""
    choice_dropout: float = 0.1
    """Of the input of a multiple choice head, in families with their own rate for it."""
    layer_norm_eps: float = 1e-12
    init_std: float = 0.02
    """Of the normal distribution before truncation (`bertcli.model.init`)."""
    generator: Architecture | None = None
    """Of the model that replaces words in the rows of this one (`bertcli.model.pretraining`)."""
    family: str = "bert"
    """The `model_type` in `config.json` of its folders (`bertcli.families`)."""

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise ValueError(
                f"heads must divide hidden: {self.hidden} / {self.heads} leaves {self.hidden % self.heads}"
            )

    @property
    def usable_positions(self) -> int:
        """The maximum number of tokens in a row."""
        return self.max_positions - self.position_offset

    @property
    def layer_order(self) -> list[int]:
        """The number of each layer's weights, in the order of the layers."""
        groups = self.layer_groups or self.layers
        return [int(layer / (self.layers / groups)) for layer in range(self.layers)]

    @property
    def head_dropout(self) -> float:
        """The rate before a task's head."""
        return self.dropout if self.classifier_dropout is None else self.classifier_dropout

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads


def forward_flops(architecture: Architecture, length: float, predicted: float) -> float:
    """Operations per token in the model's matrix products; a multiplication with its addition counts as two.

    2 L (4 D^2 + 2 D F) + 4 L T D + p 2 (D E + E V): projections, attention over rows of T tokens, and the MLM
    head at the share p of the tokens whose word is predicted (0: a labeled task); E is the width of the
    embeddings. A gate adds D F to a layer; a local layer reads its window in place of T tokens; each term of
    relative positions adds 2 L T D. Others (dropout, LayerNorm, softmax, the optimizer) are not counted, as
    in Chowdhery et al. 2022, appendix B. The last layer is counted in full, although `model.fast.layer`
    skips a part: programs can then be compared. A mask decoder is one more layer. A model with a generator
    predicts no words itself: the operations of both are added.

    Args:
        length: real tokens of a row.
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
    """As `forward_flops`, with the backward pass, which needs twice as many. The recomputation of activation
    checkpointing is not counted, because it does no additional training."""
    return 3 * forward_flops(architecture, length, predicted)
