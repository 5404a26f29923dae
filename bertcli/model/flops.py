"""The sizes of a step -> its floating-point operations, to compare machines and programs."""

from __future__ import annotations

from dataclasses import replace

from bertcli.model.architecture import Architecture


def forward_flops(architecture: Architecture, length: float, predicted: float) -> float:
    """Operations per token in the model's matrix products; a multiplication with its addition counts as two.

    2 L (4 D^2 + 2 D F) + 4 L T D + p 2 (D E + E V): projections, attention over rows of T tokens, and the MLM
    head at the share p of the tokens whose word is predicted (0: a labeled task); E is the width of the
    embeddings. A gate adds D F to a layer; a local layer reads its window in place of T tokens; each term of
    relative positions adds 2 L T D. Others (dropout, LayerNorm, softmax, the optimizer) are not counted, as
    in Chowdhery et al. 2022, appendix B. The last layer is counted in full, although `model.fast.encoder`
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
