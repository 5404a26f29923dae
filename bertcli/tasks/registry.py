"""The settings of a labeled task -> the task."""

from __future__ import annotations

from collections.abc import Mapping

from bertcli.config.finetune import TaskSettings
from bertcli.tasks.classification import Classification
from bertcli.tasks.multiple_choice import MultipleChoice
from bertcli.tasks.question_answering import QuestionAnswering
from bertcli.tasks.regression import Regression
from bertcli.tasks.sentence_embedding import SentenceEmbedding
from bertcli.tasks.supervised import LabeledTask
from bertcli.tasks.token_classification import TokenClassification


def build_task(
    settings: TaskSettings, labels: tuple[str, ...], class_weights: Mapping[str, float] | None = None
) -> LabeledTask:
    """`labels`: in the order of the head's outputs; `class_weights`: for classification alone."""
    if settings.type == "classification":
        return Classification(settings, labels, class_weights)
    others = {
        "regression": Regression,
        "token-classification": TokenClassification,
        "question-answering": QuestionAnswering,
        "multiple-choice": MultipleChoice,
        "sentence-embedding": SentenceEmbedding,
    }
    return others[settings.type](settings, labels)
