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
    """Rows at once on the device. auto: as many as its memory holds, used or free, and as gain speed."""
    learning_rate: Decided[float, Field(gt=0.0, le=1e6)] = AUTO
    """The peak. auto: by the model's width and depth."""
    betas: tuple[Annotated[float, Field(ge=0.0, lt=1.0)], Annotated[float, Field(ge=0.0, lt=1.0)]] = (
        0.9,
        0.999,
    )
    """Of AdamW: how long its two moments last."""
    weight_decay: Weight = 0.01
    """Of AdamW; not of biases and norms."""
    schedule: Schedule = "linear"
    """After the warm-up, down to 0 (linear, cosine), or as it is (constant). stable-decay: as it is, then
    down in the last steps of a pretraining run; --resume with more steps goes back to where that began."""
    max_grad_norm: Annotated[float, Field(gt=0.0)] = 1.0
    """A longer gradient is scaled down to this length."""
    max_bad_steps: Count = 10
    """Consecutive non-finite steps before the run stops."""
    precision: Literal["auto", "bf16", "fp16", "fp32"] = "auto"
    """Of the matrix products; weights stay fp32. auto: the fastest that the hardware has."""
    device: str = "auto"
    """auto, cpu, cuda, or cuda:N."""
    compile: bool | Auto = "auto"
    """auto: on a GPU, if the run is long enough to save more time than compiling takes."""
    activation_checkpointing: bool = False
    """Keep less for the backward pass and compute it again: less memory, more time."""
    parallel: Literal["ddp", "fsdp"] = "ddp"
    """On several ranks: a copy of the model on each, or a part of it."""

    @property
    @abstractmethod
    def largest_batch(self) -> int:
        """Rows of the largest step."""


class DistillationConfig(Section):
    """A student learns from a trained teacher (Sanh et al. 2019)."""

    teacher: FilePath
    """A model folder with an MLM head. The student has its tokenizer; where sizes agree it starts with the
    teacher's embeddings and with layers of it, evenly spaced."""
    temperature: Positive = 2.0
    """Divides the logits of both."""
    weights: tuple[Weight, Weight, Weight] = (5.0, 2.0, 1.0)
    """Of three losses: the teacher's words at masked tokens, the true words there, and the direction of the
    last hidden states at all tokens."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not any(self.weights):
            raise ValueError("weights: all are 0, so that nothing is learned; give one that is larger")
        return self
