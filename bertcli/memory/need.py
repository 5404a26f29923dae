"""The sizes of a training step -> the bytes that it takes, by part. A calculation: nothing is run.

What `bertcli.model` keeps for the backward pass is listed tensor by tensor; `tests/memory/test_need.py`
counts what it really keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from bertcli.model.architecture import Architecture

FP32, HALF, BOOL = 4, 2, 1
CHECKPOINT_BYTES = 3 * FP32
"""A parameter of a checkpoint: its weight and AdamW's two moments."""
HEAP_WASTE = 1.65
"""Bytes of a CPU's heap for a byte of activations, once some steps have cut it up: measured (`LOG.md`)."""


@dataclass(frozen=True)
class StepSizes:
    """The rows that go through the model at once, and how.

    Attributes:
        rows, length: rows of so many tokens.
        predicted: share of the tokens whose word is predicted; 0 for a labeled task.
        half: 16-bit precision.
        checkpointing: a layer's activations are computed again, not kept.
        on_cpu: on a CPU; else on a GPU.
    """

    rows: int
    length: int
    predicted: float
    half: bool
    checkpointing: bool
    on_cpu: bool

    @property
    def tokens(self) -> int:
        """Of a micro-batch, padding included."""
        return self.rows * self.length

    @property
    def selected(self) -> float:
        """Share of the tokens that go through all of the last layer; of a labeled task it may be 1."""
        return min(1.0, self.predicted + 1 / self.length) if self.predicted else 1.0


@dataclass(frozen=True)
class StepMemory:
    """Bytes by part.

    Attributes:
        weights: in 16-bit precision with a copy in it.
        moments: AdamW's two.
        activations: kept for the backward pass, and the gradients of one layer's.
        logits: of the predicted tokens: themselves and their gradient, on a GPU their softmax as well.
    """

    weights: float
    gradients: float
    moments: float
    activations: float
    logits: float

    @property
    def total(self) -> float:
        """In bytes, all parts together."""
        return sum(getattr(self, field.name) for field in fields(self))


class _Kept(NamedTuple):
    """Tensors of one size."""

    number: int
    bytes_per_token: float


def step_memory(architecture: Architecture, parameters: int, trained: int, sizes: StepSizes) -> StepMemory:
    """What is held at the peak of a step: after the second micro-batch's forward pass, with the gradients of
    the first. (A lone micro-batch's come when activations go, but on a CPU the heap leaves them no room.)

    Args:
        parameters: of the model, `trained` of them by AdamW: weight, gradient and two moments, all in fp32.
    """
    narrow = HALF if sizes.half else FP32  # of what goes from layer to layer as well
    a_layer = sum(_held(kept, sizes) for kept in _of_layer(architecture, sizes, selected=1.0))
    last_layer = sum(_held(kept, sizes) for kept in _of_layer(architecture, sizes, sizes.selected))
    only_input = _held(_Kept(1, narrow * architecture.hidden), sizes)
    if sizes.checkpointing:
        layers = architecture.layers * only_input
    else:
        layers = (architecture.layers - 1) * a_layer + last_layer
    embeddings = _held(_Kept(3, FP32 * architecture.hidden), sizes)
    backward = _held(_Kept(2, narrow * architecture.hidden), sizes)
    backward += _held(_Kept(1, narrow * architecture.feed_forward), sizes)
    if sizes.on_cpu and not sizes.checkpointing:  # the gradients of keys and values have the more
        backward = max(sizes.selected * backward, _held(_Kept(7, narrow * architecture.hidden), sizes))
    if sizes.on_cpu:  # themselves and their gradient
        logits = _held(_Kept(2, narrow * sizes.predicted * architecture.vocab_size), sizes)
    else:
        logits = _held(_Kept(3, FP32 * sizes.predicted * architecture.vocab_size), sizes)
    again = a_layer if sizes.checkpointing else 0.0
    activations = layers + embeddings + max(0.0, backward + again - logits)  # logits are gone by then
    # At the end nothing is left but the word embeddings' gradient: as decoder, as embeddings, and the sum.
    words = (3 if sizes.predicted else 1) * FP32 * architecture.vocab_size * architecture.hidden
    copies = HALF * sizes.half * parameters
    activations = max(activations, words - logits - copies)
    return StepMemory(
        weights=FP32 * parameters + copies,
        gradients=FP32 * trained,
        moments=2 * FP32 * trained,
        activations=activations,
        logits=logits,
    )


def rows_that_fit(
    architecture: Architecture, parameters: int, sizes: StepSizes, available: float, at_most: int
) -> int:
    """The most rows, 1 to `at_most`, with which a step of a model all of which is trained fits into
    `available` bytes; 1 where not even one does. `sizes.rows` does not count."""
    low, high = 1, at_most
    while low < high:
        middle = (low + high + 1) // 2
        need = step_memory(architecture, parameters, parameters, sizes=replace(sizes, rows=middle))
        low, high = (middle, high) if need.total <= available else (low, middle - 1)
    return low


def _of_layer(architecture: Architecture, sizes: StepSizes, selected: float) -> Iterator[_Kept]:
    """What a layer keeps where the share `selected` of the tokens goes through all of it: counted on a CPU,
    on a GPU by what torch's kernels save."""
    hidden, narrow = architecture.hidden, HALF if sizes.half else FP32
    yield _Kept(2, narrow * selected * architecture.feed_forward)  # before and after GELU
    if architecture.dropout:
        yield _Kept(2, BOOL * selected * hidden)  # what is kept
    if sizes.on_cpu:
        matrix = (
            narrow * selected * architecture.heads * sizes.length
        )  # of a query for each token that is selected
        yield _Kept(2, narrow * hidden)  # keys, values
        yield _Kept(3, narrow * selected * hidden)  # queries; the context by heads and by tokens
        yield _Kept(4, narrow * selected * hidden)  # what goes into each LayerNorm, and what comes out
        yield _Kept(2 if architecture.attention_dropout else 1, matrix)
        return
    yield _Kept(4, narrow * hidden)  # query, key, value, context
    yield _Kept(2, FP32 * selected * hidden)  # what goes into each LayerNorm, which computes in fp32
    yield _Kept(2, narrow * selected * hidden)  # what comes out


def _held(kept: _Kept, sizes: StepSizes) -> float:
    """Bytes of memory for tensors of one size."""
    size = kept.bytes_per_token * sizes.tokens
    waste = HEAP_WASTE if sizes.on_cpu else 1.0
    return kept.number * size * waste
