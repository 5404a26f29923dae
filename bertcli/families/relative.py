"""The facts in which models with relative positions in their attention differ (He et al. 2021)."""

from dataclasses import dataclass
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
