"""Sections that configs of both kinds have, or build on: the optimizer's steps, and a teacher."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from bertcli.config.section import AUTO, Auto, Count, Decided, FilePath, Positive, Rows, Section, Weight

Schedule = Literal["linear", "cosine", "constant", "stable-decay"]


class LoopConfig(Section):
    """The optimizer's steps, in pretraining and in fine-tuning."""

    micro_batch_size: Rows | Auto = "auto"
    """Rows that the device computes at once. auto: as many as fit into its memory, used or free, and still
    gain speed."""
    learning_rate: Decided[float, Field(gt=0.0, le=1e6)] = AUTO
    """Peak learning rate. auto: from the model's width and depth; a third of that with `init_from`."""
    betas: tuple[Annotated[float, Field(ge=0.0, lt=1.0)], Annotated[float, Field(ge=0.0, lt=1.0)]] = (
        0.9,
        0.999,
    )
    """AdamW's betas: the decay rates of its two moments."""
    weight_decay: Weight = 0.01
    """Weight decay of AdamW; biases and norms are not decayed."""
    schedule: Schedule = "linear"
    """Learning rate after the warm-up: it falls to 0 (linear, cosine) or stays (constant). stable-decay: it
    stays, then falls in the last steps of a pretraining run; --resume with more steps goes back to where the
    fall began."""
    max_grad_norm: Annotated[float, Field(gt=0.0)] = 1.0
    """Largest norm of the gradient; a longer gradient is scaled down to it."""
    max_bad_steps: Count = 10
    """Number of steps in a row with a non-finite loss or gradient after which the run stops."""
    precision: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    """Number format of the matrix products; weights stay fp32. auto: the fastest that the hardware has."""
    device: str = "auto"
    """The device of the run: auto, cpu, cuda, or cuda:N."""
    compile: bool | Auto = "auto"
    """Whether to compile the model. auto: on a GPU, if the run is long enough to save more time than
    compiling takes."""
    activation_checkpointing: bool = False
    """Keep fewer activations for the backward pass and compute the others again: less memory, more time."""
    parallel: Literal["ddp", "fsdp"] = "ddp"
    """The model on several ranks: ddp keeps a copy of it on each rank, fsdp a part of it."""

    @property
    @abstractmethod
    def largest_batch(self) -> int:
        """Rows of the largest step."""


class DistillationConfig(Section):
    """A student learns from a trained teacher (Sanh et al. 2019)."""

    teacher: FilePath
    """A model folder with an MLM head. The student has the teacher's tokenizer. Where sizes agree, it starts
    with the teacher's embeddings and with some of the teacher's layers, evenly spaced."""
    temperature: Positive = 2.0
    """Divisor of the logits of student and teacher."""
    weights: tuple[Weight, Weight, Weight] = (5.0, 2.0, 1.0)
    """Weights of three losses: the teacher's words at masked tokens, the true words there, and the direction
    of the last hidden states at all tokens."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not any(self.weights):
            raise ValueError("weights: all are 0, so that nothing is learned; give one that is larger")
        return self
