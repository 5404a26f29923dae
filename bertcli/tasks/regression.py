"""A text or a pair -> a number (STS-B in Devlin et al. 2019, section 4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.config.finetune import TaskSettings
from bertcli.examples.examples import TextExample
from bertcli.metrics.correlation import correlation_scores
from bertcli.tasks.base import Term
from bertcli.tasks.supervised import Item, LabeledBatch, LabeledTask
from bertcli.tasks.texts import encode_texts, pair_ranking
from bertcli.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Value:
    """A predicted number."""

    value: float

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {"value": self.value}


class Regression(LabeledTask):
    """One number a text, by squared error; or a probability, by binary cross-entropy (`sigmoid`)."""

    metric = "pearson_spearman"

    def __init__(self, settings: TaskSettings, labels: tuple[str, ...] = ()):
        super().__init__(settings, labels)
        self.answer_kind = "sigmoid" if settings.sigmoid else "value"

    def encode(self, examples: Sequence[TextExample], tokenizer: Tokenizer) -> list[Item]:
        return encode_texts(examples, tokenizer, self.settings.max_length, target=float)

    def answers(self, logits: Tensor, batch: LabeledBatch) -> Tensor:
        return logits.float()

    def term(self, logits: Tensor, batch: LabeledBatch) -> Term:
        targets_B = torch.tensor([item.target for item in batch.items], device=logits.device)
        loss = F.binary_cross_entropy_with_logits if self.settings.sigmoid else F.mse_loss
        return Term(loss(self.answers(logits, batch)[:, 0], targets_B, reduction="sum"), correct=None)

    def predict(self, example: TextExample, items: Sequence[Item], logits: Sequence[Tensor]) -> Value:
        return Value(float(logits[0].sigmoid() if self.settings.sigmoid else logits[0]))

    def is_right(self, example: TextExample, prediction: Value) -> bool:
        """Closer than half a unit: a number is not right or wrong, but users look for large errors."""
        return abs(prediction.value - _number(example)) < 0.5

    def score(self, examples: Sequence[TextExample], predictions: Sequence[Value]) -> Mapping[str, Any]:
        """Of pairs also how well the rows of each first text are ranked."""
        truths = [_number(example) for example in examples]
        values = [prediction.value for prediction in predictions]
        return correlation_scores(truths, values) | pair_ranking(examples, truths, values)


def _number(example: TextExample) -> float:
    assert isinstance(example.label, float)
    return example.label
