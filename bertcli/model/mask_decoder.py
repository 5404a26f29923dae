"""The enhanced mask decoder of DeBERTa (He et al. 2021, section 3.2): absolute positions, just before the
words are predicted."""

from __future__ import annotations

from torch import Tensor, nn

from bertcli.model.architecture import Architecture

TIMES = 2
"""The last layer is applied so often, as in the authors' code."""


class MaskDecoder(nn.Module):
    """The positions that the last layer's queries get; keys and values stay those of the layers below.

    The layer is the encoder's own (`Encoder.forward`), so that only this table is new.
    """

    def __init__(self, architecture: Architecture) -> None:
        super().__init__()
        self.positions = nn.Embedding(architecture.max_positions, architecture.hidden)

    def forward(self, length: int) -> Tensor:
        """-> positions_TD of rows of `length` tokens."""
        return self.positions.weight[:length]
