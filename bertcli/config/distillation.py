"""What a student learns of its teacher, in pretraining and in fine-tuning."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from bertcli.config.section import FilePath, Positive, Section, Weight


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


class FinetuneDistillationConfig(Section):
    """The model learns the answers of a fine-tuned teacher besides the labels (Hinton et al. 2015)."""

    teacher: FilePath
    """A model that `bertcli finetune` made from the same task, with the tokenizer of `model`."""
    temperature: Positive = 2.0
    """Divides the logits of both; a number that is predicted stays as it is."""
    weights: tuple[Weight, Weight] = (1.0, 1.0)
    """Of two losses: the teacher's answers, and the labels."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not any(self.weights):
            raise ValueError("weights: both are 0, so that nothing is learned; give one that is larger")
        return self
