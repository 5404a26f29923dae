"""The model that fine-tuning starts with: what is taken from the folder, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bertcli.tasks.examples import SimilarExample
from bertcli.tasks.supervised import LabeledBatch, build_task
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training.task_models import new_task_model
from tests.finetunes import checked, spam_config, write_model


@pytest.mark.parametrize(
    ("text", "folder_rate", "rate"), [("text", 0.0, 0.1), ("text", 0.2, 0.2), (["a", "b"], 0.0, 0.0)]
)
def test_two_readings_of_a_plain_text_differ(
    tmp_path: Path, text: str | list[str], folder_rate: float, rate: float
) -> None:
    """Also of a model without dropout, such as most of those that bertcli pretrains."""
    folder = write_model(tmp_path / "bert", dropout=folder_rate, attention_dropout=folder_rate)
    config = spam_config(tmp_path)
    config["task"] = {"type": "sentence-embedding", "train": "x.tsv", "text": text, "max_length": 16}
    said: list[str] = []
    config = checked(config)
    task = build_task(config.task.settings, ())
    model = new_task_model(config, folder, task, said.append)
    assert model.architecture.dropout == model.architecture.attention_dropout == rate
    assert any("dropout: 0.1 instead of 0" in line for line in said) == (rate > folder_rate)
    given = ("a red house",) if text == "text" else ("a red house", "a red house")
    tokenizer = Tokenizer.load(folder)
    items = task.encode([SimilarExample("here", {}, given, None)], tokenizer)
    one_D, other_D = model.train()(*LabeledBatch(tuple(items), tokenizer.pad_id).rows)
    assert torch.equal(one_D, other_D) == (rate == 0)
