"""What a folder says to sentence-transformers' `CrossEncoder`, and that it is read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bertcli.config.task import TaskSettings
from bertcli.folders.lengths import trained_length
from bertcli.folders.model_files import write_model_files
from bertcli.folders.task_folder import declare_task, load_task_folder, task_keys
from bertcli.model.task_models import build_task_model
from tests.folders.folders import ODD, tiny_tokenizer

PAIR: dict[str, Any] = {
    "type": "regression",
    "text": ["question", "passage"],
    "label": "relevant",
    "max_length": 17,
}


def settings(**keys: Any) -> TaskSettings:
    return TaskSettings(**PAIR | keys)


def activation(settings: TaskSettings, *labels: str) -> str | None:
    return task_keys(settings, labels).get("sentence_transformers", {}).get("activation_fn")


def test_a_value_is_as_it_is_and_a_probability_is_a_sigmoid() -> None:
    assert activation(settings()) == "torch.nn.modules.linear.Identity"
    assert activation(settings(sigmoid=True)) == "torch.nn.modules.activation.Sigmoid"
    one_label = settings(type="classification", multi_label=True)
    assert activation(one_label, "relevant") == "torch.nn.modules.activation.Sigmoid"


def test_other_models_are_no_cross_encoders() -> None:
    assert activation(settings(text="passage")) is None
    assert activation(settings(type="classification"), "no", "yes") is None
    assert activation(settings(type="classification", multi_label=True), "red", "blue") is None


@pytest.mark.parametrize("sigmoid", [False, True])
def test_the_folder_is_read_back_with_its_length(tmp_path: Path, sigmoid: bool) -> None:
    """Rows of another length would have other scores."""
    pair = settings(sigmoid=sigmoid)
    model = build_task_model("sequences", ODD)
    write_model_files(tmp_path, model, tiny_tokenizer(), declare_task(pair, (), trained_length=19))
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["model_max_length"] == 17
    assert trained_length(tmp_path) == 19
    loaded = load_task_folder(tmp_path)
    assert (loaded.settings, loaded.labels) == (pair, ())
    problem = json.loads((tmp_path / "config.json").read_text())["problem_type"]
    assert problem == ("multi_label_classification" if sigmoid else "regression")
