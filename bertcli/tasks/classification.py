"""A text or a pair -> one label, or any number of labels."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from bertcli.config.task import LABEL_LINES, ClassWeights, TaskSettings
from bertcli.objectives.base import Term
from bertcli.system.errors import UserError
from bertcli.system.terminal import Report
from bertcli.tasks.calibration import (
    USUAL,
    Bin,
    LabeledLogits,
    chooser_of,
    fit,
    kept_settings,
    reliability,
)
from bertcli.tasks.examples import TextExample
from bertcli.tasks.facts import output_names, score_keys
from bertcli.tasks.label_cells import read_labels, text_examples
from bertcli.tasks.labeled_texts import recognize_classes
from bertcli.tasks.labels import class_labels, label_weights, listed
from bertcli.tasks.scores import classification_scores, multi_label_scores
from bertcli.tasks.shown import (
    Mistake,
    Prediction,
    ShownAnswer,
    beside_texts,
    likeliest_first,
    nearness,
    plain_passages,
)
from bertcli.tasks.supervised import Items, LabeledBatch, Logits
from bertcli.tasks.text_task import TextTask, pair_ranking
from bertcli.tasks.verdict import Verdict, label_sets_verdict, labels_verdict


@dataclass(frozen=True)
class Classified(Prediction):
    """A text's label or labels, and the logit of every label: a dictionary for each text would need 22 GB for
    3,000 texts and 100,000 labels. Without `multi_label`, a text without a label is undecided."""

    labels: tuple[str, ...]
    names: tuple[str, ...]
    logits_C: NDArray[np.floating[Any]]
    multi_label: bool

    @property
    def probabilities(self) -> dict[str, float]:
        """The probability of every label."""
        logits_C = torch.from_numpy(self.logits_C)
        probabilities_C = logits_C.sigmoid() if self.multi_label else logits_C.softmax(dim=-1)
        return dict(zip(self.names, probabilities_C.tolist(), strict=True))

    def label_scores(self, raw: bool) -> dict[str, float]:
        return dict(zip(self.names, self.logits_C.tolist(), strict=True)) if raw else self.probabilities

    def decided(self, least: float) -> Self:
        if self.multi_label:
            return super().decided(least)
        return replace(self, labels=()) if self.probabilities[self.labels[0]] < least else self

    @property
    def uncertainty(self) -> float:
        """The nearness of the two likeliest labels; of several, the least sure one (Brinker 2006)."""
        logits_C = torch.from_numpy(self.logits_C)
        if self.multi_label:
            return 1.0 - float((2 * logits_C.sigmoid() - 1).abs().min())
        return nearness(logits_C.softmax(dim=-1).topk(min(2, len(logits_C))).values.tolist())

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        label = list(self.labels) if self.multi_label else next(iter(self.labels), None)
        return {"label": label, "probabilities": self.probabilities}

    def readable(self, example: TextExample) -> str:
        """The labels with their probabilities, and the text."""
        probabilities, text = self.probabilities, beside_texts(example)
        if self.multi_label:
            chosen = ", ".join(f"{name} {probabilities[name]:.2%}" for name in self.labels)
            return f"{chosen or 'no label'}  {text}"
        if not self.labels:
            return f"{max(probabilities.values()):7.2%}  undecided  {text}"
        return f"{probabilities[self.labels[0]]:7.2%}  {self.labels[0]}  {text}"

    def display(self, example: TextExample) -> ShownAnswer:
        """The labels, and the probability of each one that there is."""
        return ShownAnswer(", ".join(self.labels) or "no label", likeliest_first(self.probabilities.items()))


class Classification(TextTask):
    """One label a text by softmax, or any number of labels, each by a sigmoid (`multi_label`)."""

    type = "classification"
    keys = (
        *("label_names", "skip_labels", "multi_label", "label_separator", "ticks", "positive_label"),
        *("class_weights", "few_shot", "threshold", "temperature", "pooling", "windows", "max_windows"),
    )
    formats = LABEL_LINES
    table_examples = staticmethod(partial(text_examples, read=read_labels))
    label_set = staticmethod(class_labels)
    recognize = staticmethod(recognize_classes)
    names_outputs = True

    @classmethod
    def is_in(cls, config: Mapping[str, Any]) -> bool:
        """True unless the class, which also serves regression, gives a number."""
        problem = config.get("problem_type")
        return problem != "regression" and (problem is not None or len(output_names(config)) != 1)

    @classmethod
    def foreign_settings(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """One label a text, or several by `problem_type`."""
        several = config.get("problem_type") == "multi_label_classification"
        return super().foreign_settings(config) | {"multi_label": several}

    @classmethod
    def config_keys(cls, settings: TaskSettings, labels: Sequence[str]) -> dict[str, Any]:
        """The labels, the loss, and how one label's probability is the score of a pair."""
        problem = "multi_label_classification" if settings.multi_label else "single_label_classification"
        keys = super().config_keys(settings, labels) | {"problem_type": problem}
        is_score = settings.multi_label and len(labels) == 1
        return keys | (score_keys(settings, "activation.Sigmoid") if is_score else {})

    def __init__(self, settings: TaskSettings, labels: tuple[str, ...]):
        """Raise `UserError` for a positive label or thresholds that do not fit the labels."""
        super().__init__(settings, labels)
        self.multi_label = settings.multi_label
        self.metric = "macro_f1" if self.multi_label else "accuracy"
        self.answer_kind = "sigmoid" if self.multi_label else "softmax"
        self._positive = _positive_label(settings, labels)
        self._chooser = chooser_of(settings, labels, self._positive)
        self._weights_C: Tensor | None = None

    @classmethod
    def usual_settings(cls, values: dict[str, Any]) -> dict[str, Any]:
        """The columns of lines with labels have names; several columns are several labels."""
        if values.get("format") in LABEL_LINES:
            given = {key: value for key, value in values.items() if value is not None}
            return {"text": "text", "label": "label"} | given
        return {"multi_label": True} | values if isinstance(values.get("label"), list) else values

    @classmethod
    def check_settings(cls, settings: TaskSettings) -> None:
        super().check_settings(settings)
        several = isinstance(settings.label, list)
        if several and not settings.multi_label:
            raise ValueError("label: several columns are several labels a text: set multi_label: true")
        if settings.label_separator == "":
            raise ValueError("label_separator: it is empty")
        if settings.label_separator is not None and (several or not settings.multi_label):
            raise ValueError("label_separator is for multi_label: true, and one column")
        if settings.ticks and not several:
            raise ValueError("ticks is for several columns of labels")
        if several and settings.label_names is not None:
            raise ValueError("label_names is for one column of labels")
        if settings.multi_label and settings.positive_label is not None:
            raise ValueError("positive_label is for two labels, one a text: not with multi_label")
        if settings.threshold == {}:
            raise ValueError("threshold: it names no label; give a number, auto, precision=0.95 or null")
        if isinstance(settings.threshold, dict) and not settings.multi_label and len(settings.threshold) > 1:
            raise ValueError("threshold: a number for each label is for multi_label: true; give one label's")

    def prepare(self, examples: Sequence[TextExample], report: Report, weights: ClassWeights = None) -> None:
        """Take the weight of each label in the loss; None: all are equal."""
        if found := label_weights(weights, self.labels, examples):
            self._weights_C = torch.tensor([found[label] for label in self.labels])

    def target(self, label: Any) -> int | list[int]:
        """The number of the label, or those of several."""
        return self._known(label) if self.multi_label else self.label_numbers[label]

    def _known(self, labels: Iterable[str]) -> list[int]:
        """The numbers of the labels; labels that the model does not have are left out."""
        return [self.label_numbers[label] for label in labels if label in self.label_numbers]

    def count(self, batch: LabeledBatch) -> float:
        """The number of texts, or of (text, label) pairs with `multi_label`. Weights are not counted: they
        would cancel in a batch with one label."""
        return len(batch.items) * (len(self.labels) if self.multi_label else 1)

    def term(self, logits: Tensor, batch: LabeledBatch) -> Term:
        """Weighted cross-entropy (int64 [B]); binary cross-entropy with `multi_label` (float32 [B, C])."""
        targets, logits = [item.target for item in batch.items], self.answers(logits, batch)
        if self.multi_label:
            targets_BC = torch.from_numpy(self._flags(targets)).float().to(logits.device)
            return Term(F.binary_cross_entropy_with_logits(logits, targets_BC, reduction="sum"))
        targets_B = torch.tensor(targets).to(logits.device)
        weights_C = None if self._weights_C is None else self._weights_C.to(logits.device)
        return Term(F.cross_entropy(logits, targets_B, weights_C, reduction="sum"))

    def predict(self, example: TextExample, items: Items, logits: Logits) -> Classified:
        return self._classified(self.logits_of_text(logits).numpy())

    def _classified(self, logits_C: NDArray[np.floating[Any]]) -> Classified:
        chosen = tuple(self.labels[number] for number in self._chooser.choose(logits_C))
        return Classified(chosen, self.labels, logits_C, multi_label=self.multi_label)

    def settled(self, predictions: Sequence[Classified], kept: TaskSettings) -> Sequence[Classified]:
        finished, divisor = Classification(kept, self.labels), np.float32(kept.temperature or 1)
        return [finished._classified(each.logits_C / divisor) for each in predictions]

    def _flags(self, rows: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
        """bool [rows, labels]: True where a row has the label. `rows` holds the label numbers of each row."""
        flags_NC = np.zeros((len(rows), len(self.labels)), np.bool_)
        for row, numbers in enumerate(rows):
            flags_NC[row, list(numbers)] = True
        return flags_NC

    def is_right(self, example: TextExample, prediction: Classified) -> bool:
        return set(prediction.labels) == set(example.names)

    def score(self, examples: Sequence[TextExample], predictions: Sequence[Classified]) -> Mapping[str, Any]:
        """The scores. Thresholds and the temperature, if they are open, are fitted on these examples."""
        rows = self._labeled_logits(examples, predictions)
        chooser, found = fit(self.settings, self._chooser, rows)
        truths, given = rows.truths, [chooser.choose(logits_C) for logits_C in rows.logits]
        if not self.multi_label:
            truth, answers = ([numbers[0] for numbers in each] for each in (truths, given))
            scores = classification_scores(truth, answers, self.labels, positive=self._positive)
        else:
            scores = multi_label_scores(self._flags(truths), self._flags(given), self.labels)
            if isinstance(self.settings.threshold, str) and chooser.thresholds is not None:
                for label, threshold in zip(self.labels, chooser.thresholds, strict=True):
                    scores["per_class"][label]["threshold"] = threshold
            if len(self.labels) == 1:
                of_label = [each.probabilities[self.labels[0]] for each in predictions]
                scores |= pair_ranking(examples, [float(bool(each.names)) for each in examples], of_label)
        return dict(sorted((scores | found).items(), key=lambda each: isinstance(each[1], dict | list)))

    def reliability(
        self, examples: Sequence[TextExample], predictions: Sequence[Classified]
    ) -> dict[str, list[Bin]]:
        rows, temperature = self._labeled_logits(examples, predictions), self.settings.temperature
        found = {"as given": reliability(rows)}
        if isinstance(temperature, float):
            found["without the temperature"] = reliability(rows, 1 / temperature)
        return found

    def _labeled_logits(
        self, examples: Sequence[TextExample], predictions: Sequence[Classified]
    ) -> LabeledLogits:
        truths = [self._known(example.names) for example in examples]
        return LabeledLogits([each.logits_C for each in predictions], truths, self.multi_label)

    def kept_settings(self, metrics: Mapping[str, Any]) -> TaskSettings:
        """The settings of the finished model. A number for two labels is kept with its label."""
        kept = kept_settings(self.settings, metrics)
        if self.multi_label or not isinstance(kept.threshold, float):
            return kept
        return kept.model_copy(update={"threshold": {self.labels[self._chooser.positive]: kept.threshold}})

    def verdict(self, examples: Sequence[TextExample], metrics: Mapping[str, Any]) -> Verdict:
        """The verdict beside the most frequent label, or the best constant set of labels."""
        if self.multi_label:
            return label_sets_verdict([each.names for each in examples], metrics)
        return labels_verdict([str(each.label) for each in examples], metrics)

    def right_answer(self, example: TextExample) -> Any:
        return list(example.names) if self.multi_label else example.label

    def mistake(self, example: TextExample, prediction: Classified, examples: Sequence[Any]) -> Mistake:
        """A wrong answer. Of several wrong labels, the one that is farthest from its threshold counts."""
        passages, probabilities = plain_passages(example.texts), prediction.probabilities
        if not self.multi_label:
            (given,) = prediction.labels
            return Mistake(passages, probabilities[given], right=str(example.label), given=given)
        right, given = self.right_answer(example), prediction.labels
        usual = [USUAL] * len(self.labels)
        thresholds = dict(zip(self.labels, self._chooser.thresholds or usual, strict=True))
        farthest = max(_distance(probabilities[each], thresholds[each]) for each in set(given) ^ set(right))
        right, given = (", ".join(labels) or "(none)" for labels in (right, given))
        return Mistake(passages, farthest, right=right, given=given)

    def compared(self, example: TextExample, prediction: Classified) -> tuple[str, str] | None:
        return None if self.multi_label else (str(example.label), prediction.labels[0])


def _positive_label(settings: TaskSettings, labels: Sequence[str]) -> str | None:
    """The label that the config names. Raises `UserError` if it is not one of two."""
    label = settings.positive_label
    if label is not None and labels and (len(labels) != 2 or label not in labels):
        problem = f"{label!r} is not a label" if len(labels) == 2 else f"is for two labels, not {len(labels)}"
        raise UserError(f"task.positive_label: {problem}; the labels are {listed(labels)}")
    return label


def _distance(probability: float, threshold: float) -> float:
    """How sure an answer is: 0.5 at the threshold, 1 where the probability is 0 or 1."""
    room = 1 - threshold if probability >= threshold else threshold
    return 0.5 + 0.5 * abs(probability - threshold) / max(room, 1e-12)
