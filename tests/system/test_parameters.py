from __future__ import annotations

import pytest

from bertcli.families.family import HeadKind
from bertcli.model.pretraining import PretrainingModel
from bertcli.model.task_models import build_task_model
from bertcli.system.memory import count_parameters, pretraining_parameters
from tests.folders.folders import ODD


@pytest.mark.parametrize("pair_head", [True, False])
def test_a_pretraining_model_is_counted_without_its_values(pair_head: bool) -> None:
    counts = pretraining_parameters(ODD, pair_head)
    model = PretrainingModel(ODD, pair_head)
    assert counts == count_parameters(model)
    assert sum(counts.values()) == sum(parameter.numel() for parameter in model.parameters())
    assert {"embeddings", "encoder", "mlm_head"} <= set(counts)
    assert ("pair_head" in counts) == pair_head


@pytest.mark.parametrize(("kind", "outputs"), [("sequences", 3), ("tokens", 3), ("spans", 2)])
def test_the_head_of_a_task_is_counted_by_itself(kind: HeadKind, outputs: int) -> None:
    assert count_parameters(build_task_model(kind, ODD, 3))["head"] == outputs * (ODD.hidden + 1)
