"""The sizes of a step -> its floating-point operations, to compare machines and programs."""

from __future__ import annotations

from bertcli.model.architecture import Architecture


def forward_flops(architecture: Architecture, length: float, predicted: float) -> float:
    """Operations per token in the model's matrix products; a multiplication with its addition counts as two.

    2 L (4 D^2 + 2 D F) + 4 L T D + p 2 (D^2 + D V): projections, attention over rows of T tokens, and the MLM
    head at the share p of the tokens whose word is predicted (0: a labeled task). Other operations (dropout,
    LayerNorm, softmax, the optimizer) are not counted, as in Chowdhery et al. 2022, appendix B. The last
    layer is counted in full, although `model.fast.encoder` skips a part: programs can then be compared.

    Args:
        length: real tokens of a row.
    """
    hidden = architecture.hidden
    projections = 2 * (4 * hidden**2 + 2 * hidden * architecture.feed_forward)
    attention = 4 * length * hidden
    head = 2 * (hidden**2 + hidden * architecture.vocab_size)
    return architecture.layers * (projections + attention) + predicted * head


def training_flops(architecture: Architecture, length: float, predicted: float) -> float:
    """As `forward_flops`, with the backward pass, which needs twice as many. The recomputation of activation
    checkpointing is not counted, because it does no additional training."""
    return 3 * forward_flops(architecture, length, predicted)
