"""A text or a pair -> a row, and a number from it (STS-B in Devlin et al. 2019, section 4.1)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.config.task import ClassWeights, TaskSettings
from bertcli.model.task_models import Standardization
from bertcli.objectives.base import Term
from bertcli.system.errors import UserError
from bertcli.system.terminal import Report, number
from bertcli.tasks.examples import TextExample
from bertcli.tasks.facts import output_names, score_keys
from bertcli.tasks.label_cells import text_examples
from bertcli.tasks.labeled_texts import recognize_numbers
from bertcli.tasks.scores import correlation_scores
from bertcli.tasks.shown import (
    Mistake,
    MistakeWords,
    Output,
    Prediction,
    ShownAnswer,
    beside_texts,
    plain_passages,
)
from bertcli.tasks.supervised import Items, LabeledBatch, Logits
from bertcli.tasks.table import BadRow, Row, read_number
from bertcli.tasks.text_task import TextTask, pair_ranking
from bertcli.tasks.verdict import SURE, Verdict, no_score, unless_noise

LARGEST, FINEST = 1e30, 1e-5
"""Largest number that can be learned; least standard deviation that fp32 can hold, as a share of the mean."""
ONLY_OUTPUT = "LABEL_0"
"""The name that transformers gives a single output."""


@dataclass(frozen=True)
class Value(Prediction):
    """A predicted number. `logit`: the model's output, if the number is its sigmoid."""

    value: float
    logit: float | None = None

    def label_scores(self, raw: bool) -> dict[str, float]:
        output = self.value if self.logit is None else self.logit
        return {ONLY_OUTPUT: output if raw else torch.tensor(output).sigmoid().item()}

    def as_json(self) -> dict[str, Any]:
        return {"value": self.value}

    def readable(self, example: TextExample) -> str:
        """The number, and the text."""
        return f"{self.value:10.4f}  {beside_texts(example)}"

    def display(self, example: TextExample) -> ShownAnswer:
        """The number."""
        return ShownAnswer(f"{self.value:.4f}")


def _read(row: Row, column: str, settings: TaskSettings) -> float:
    number = read_number(row, column, settings)
    if settings.sigmoid and not 0 <= number <= 1:
        raise BadRow(
            f"{row.where}, column {column!r}: {number:g} is not from 0 to 1, as task.sigmoid: true needs it; "
            "give such numbers, or set task.sigmoid: false"
        )
    return number


class Regression(TextTask):
    """One number a text, by squared error; or a probability, by binary cross-entropy (`sigmoid`).

    In training the numbers are standardized by their mean and standard deviation.
    """

    type = "regression"
    keys = ("sigmoid", "pooling", "windows", "max_windows")
    table_examples = staticmethod(partial(text_examples, read=_read))
    recognize = staticmethod(recognize_numbers)
    metric = "pearson_spearman"
    mistake_words = MistakeWords(
        title="Largest errors",
        are_wrong="are off by half a unit or more",
        worst="largest",
        score="error",
        output="value",
    )

    def __init__(self, settings: TaskSettings, labels: tuple[str, ...] = ()):
        super().__init__(settings, labels)
        self.answer_kind = "sigmoid" if settings.sigmoid else "value"

    @classmethod
    def foreign_settings(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """A text; raises `ValueError` for several numbers a text."""
        if (number := len(output_names(config))) > 1:
            raise ValueError(f"a regression with {number} values a row; bertcli supports one value")
        return super().foreign_settings(config)

    @classmethod
    def config_keys(cls, settings: TaskSettings, labels: Sequence[str]) -> dict[str, Any]:
        """One output, the loss, and how it is the score of a pair."""
        problem, activation = "regression", "linear.Identity"
        if settings.sigmoid:  # with this type transformers computes the same loss
            problem, activation = "multi_label_classification", "activation.Sigmoid"
        # transformers takes the number of outputs from the names.
        keys = super().config_keys(settings, [ONLY_OUTPUT])
        return keys | {"problem_type": problem} | score_keys(settings, activation)

    def prepare(self, examples: Sequence[TextExample], report: Report, weights: ClassWeights = None) -> None:
        """Take mean and standard deviation of the examples' numbers, but not with `sigmoid`."""
        if not self.settings.sigmoid:
            self.standardization = _standardization(examples, report)

    def target(self, label: Any) -> float:
        return float(label)

    def term(self, logits: Tensor, batch: LabeledBatch) -> Term:
        """The loss; its unit is the square of the numbers' own."""
        mean, scale = self.standardization.mean, self.standardization.scale
        targets = [(item.target - mean) / scale for item in batch.items]
        targets_B = torch.tensor(targets, device=logits.device)
        loss = F.binary_cross_entropy_with_logits if self.settings.sigmoid else F.mse_loss
        total = loss(self.answers(logits, batch)[:, 0], targets_B, reduction="sum")
        return Term(total, unit=scale**2)

    def predict(self, example: TextExample, items: Items, logits: Logits) -> Value:
        (logit,) = self.logits_of_text(logits)
        if self.settings.sigmoid:
            return Value(float(logit.sigmoid()), float(logit))
        return Value(float(logit) * self.standardization.scale + self.standardization.mean)

    def is_right(self, example: TextExample, prediction: Value) -> bool:
        """True if the error is below 0.5: a number is not right or wrong, but users look for large errors."""
        return abs(prediction.value - _number(example)) < 0.5

    def score(self, examples: Sequence[TextExample], predictions: Sequence[Value]) -> Mapping[str, Any]:
        """Correlations; for pairs also how well the rows of each first text are ranked."""
        truths = [_number(example) for example in examples]
        values = [prediction.value for prediction in predictions]
        return correlation_scores(truths, values) | pair_ranking(examples, truths, values)

    def verdict(self, examples: Sequence[TextExample], metrics: Mapping[str, Any]) -> Verdict:
        """The verdict beside the mean value."""
        values = np.array([_number(example) for example in examples], np.float64)
        n, error, variance = len(examples), metrics["mean_squared_error"], float(values.var())
        baseline = {"mean_squared_error": variance, "pearson": 0.0}
        if variance == 0:
            return no_score(baseline, f"every row has the value {values[0]:g}")
        said = f"mean squared error {error:.4g}, pearson {metrics['pearson']:.4g}"
        blind = f"always answering the mean value ({variance:.4g}, 0)"
        text = f"the order is learned, but not the scale: the error is not below that of {blind}"
        advice = "raise training.epochs"
        if error < variance:
            text, advice = f"{1 - error / variance:.1%} less error than {blind}", ""
        better = Verdict(True, baseline, f"{said}: {text}", advice=advice)
        noise = SURE / math.sqrt(n)
        return unless_noise(better, said, blind, score=metrics["pearson"], chance=0, noise=noise, rows=n)

    def mistake(self, example: TextExample, prediction: Value, examples: Sequence[Any]) -> Mistake:
        off, passages = prediction.value - _number(example), plain_passages(example.texts)
        right, given = number(_number(example)), number(prediction.value)
        score = f"{'+' if off > 0 else '−'}{number(abs(off))}"
        return Mistake(passages, abs(off), right=right, given=given, score=score)

    def compared(self, example: TextExample, prediction: Value) -> tuple[float, float]:
        return _number(example), prediction.value

    def output(self, example: TextExample, items: Items, logits: Logits, target: int | None) -> Output:
        """The value itself; of several windows, the highest one."""
        value = self.predict(example, items, logits).value
        (windows_W1,) = logits
        return Output(f"{value:.4f}", lambda logits_B1: logits_B1[:, 0], row=int(windows_W1.argmax()))


def _standardization(examples: Sequence[TextExample], report: Report) -> Standardization:
    """Mean and standard deviation, exactly rounded, so that they are equal on every machine.

    Equal numbers have the scale 1. Raises `UserError` for numbers that fp32 cannot hold.
    """
    numbers = [_number(example) for example in examples]
    extreme = max(numbers, key=abs)
    if abs(extreme) > LARGEST:
        raise UserError(
            f"task.label: {extreme:g} is too large to learn (over {LARGEST:g}); divide the numbers"
        )
    mean = math.fsum(numbers) / len(numbers)
    scale = math.sqrt(math.fsum((each - mean) ** 2 for each in numbers) / len(numbers))
    if scale <= abs(mean) * 1e-15 or scale < 1 / LARGEST:
        return Standardization(mean, 1.0)
    if scale < FINEST * abs(mean):
        report(
            f"warning: the numbers differ by {scale:g} around {mean:g}, which is too little for fp32, the "
            f"precision of a model's weights; subtract {mean:g} from all of them"
        )
    return Standardization(mean, scale)


def _number(example: TextExample) -> float:
    assert isinstance(example.label, float)
    return example.label
