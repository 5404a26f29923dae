"""The sections of a fine-tuning config about its steps, evaluations and checkpoints."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from bertcli.config.loop import LoopConfig
from bertcli.config.section import MOST, Count, Positive, Rows, Section


class FinetuneTrainingConfig(LoopConfig):
    """The optimizer's steps of a fine-tuning run (Devlin et al. 2019, appendix A.3)."""

    epochs: Positive = 3.0
    """How often the rows are read; also a part, such as 0.5."""
    batch_size: Rows = 32
    """Rows per optimizer step."""
    learning_rate: Positive = 2.0e-5
    """The peak."""
    warmup_ratio: Annotated[float, Field(ge=0.0, le=1.0)] = 0.1
    """Share of the steps over which the rate rises."""
    early_stopping: Count | None = None
    """Consecutive evaluations without a better score before the run stops."""
    layer_decay: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    """Each layer's rate is this times that of the layer above it (Howard and Ruder 2018, section 3.2)."""
    keep_layers: Count | None = None
    """The number of layers that the model starts with, evenly spaced among its own; null: all."""
    freeze_layers: Annotated[int, Field(ge=0, le=MOST)] = 0
    """The number of lowest layers that keep their weights, as do then the embeddings."""

    @property
    def largest_batch(self) -> int:
        return self.batch_size

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.schedule == "stable-decay":
            raise ValueError(
                "schedule: stable-decay is for bertcli pretrain; take linear, cosine or constant"
            )
        return self


class FinetuneEvaluationConfig(Section):
    """When the model is evaluated on the dev data."""

    every_steps: Count | None = None
    """null: after each epoch."""


class FinetuneCheckpointConfig(Section):
    """When checkpoints are saved, and how many are kept."""

    every_steps: Count | None = None
    """null: after each epoch."""
    keep_last: Count = 1
    """The number of checkpoints that are kept, besides the best one."""
