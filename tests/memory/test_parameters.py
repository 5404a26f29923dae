from __future__ import annotations

from collections import Counter

import pytest
from torch import nn

from bertcli.config.finetune import TaskType
from bertcli.memory.parameters import pretraining_parameters, task_parameters
from bertcli.model.pretraining import BertForPreTraining
from bertcli.model.task_models import build_task_model
from tests.hf.folders import ODD

HEADS = ("classifier", "qa_outputs")


def counted(model: nn.Module) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        part = name.removeprefix("bert.").split(".")[0]
        counts["head" if part in HEADS else part] += parameter.numel()
    return dict(counts)


@pytest.mark.parametrize("nsp", [True, False])
def test_a_pretraining_model_has_the_parameters_that_are_calculated(nsp: bool) -> None:
    assert pretraining_parameters(ODD, nsp) == counted(BertForPreTraining(ODD, nsp))


@pytest.mark.parametrize(
    "task",
    ["classification", "regression", "token-classification", "question-answering", "multiple-choice"],
)
def test_a_task_model_has_the_parameters_that_are_calculated(task: TaskType) -> None:
    assert task_parameters(ODD, task, 3) == counted(build_task_model(task, ODD, 3))
