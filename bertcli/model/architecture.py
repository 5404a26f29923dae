"""The sizes and rates that fix an encoder: everything a model needs to be built, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """Sizes of one encoder (Devlin et al. 2019, section 3). The same values give the same parameters.

    Raises `ValueError` where the heads do not divide the hidden size.
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
    """The row of the position table that belongs to a row's first token; those before it are not used."""
    dropout: float = 0.1
    """Of hidden states: after the embeddings and after each sub-layer."""
    attention_dropout: float = 0.1
    """Of attention probabilities."""
    classifier_dropout: float | None = None
    """Of what a task's head reads; None: as `dropout`."""
    layer_norm_eps: float = 1e-12
    init_std: float = 0.02
    """Of the normal distribution before truncation (`bertcli.model.init`)."""
    family: str = "bert"
    """The `model_type` under which its folders are written (`bertcli.families`)."""

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise ValueError(
                f"heads must divide hidden: {self.hidden} / {self.heads} leaves {self.hidden % self.heads}"
            )

    @property
    def usable_positions(self) -> int:
        """The most tokens that a row may have."""
        return self.max_positions - self.position_offset

    @property
    def head_dropout(self) -> float:
        """The rate before a task's head."""
        return self.dropout if self.classifier_dropout is None else self.classifier_dropout

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads
