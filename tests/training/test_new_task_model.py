"""The model that fine-tuning starts with: what is taken from the folder, and what is not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bertcli.config.task import PoolingMode
from bertcli.folders.config_file import read_architecture
from bertcli.system.errors import UserError
from bertcli.tasks.examples import SimilarExample
from bertcli.tasks.supervised import LabeledBatch, build_task
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training.task_models import new_task_model
from tests.finetunes import checked, spam_config, write_model
from tests.folders.folders import LABELS
from tests.parity.families import FIRST, Case, saved, saved_task


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


def read(folder: Path, pooling: PoolingMode | None) -> tuple[int, str]:
    """The layers and the pooling of a model to fine-tune; one layer more is said."""
    said: list[str] = []
    config = spam_config(folder.parent)
    config["task"]["pooling"] = pooling
    config = checked(config)
    task = build_task(config.task.settings, LABELS["classification"])
    model = new_task_model(config, folder, task, said.append)
    before = read_architecture(folder / "config.json").layers
    assert any("one more layer" in line for line in said) == (model.architecture.layers > before)
    assert len(model.body.encoder.layers) == model.architecture.layers or model.architecture.layer_groups
    return model.architecture.layers, model.architecture.pooling


@pytest.mark.parametrize("case", FIRST, ids=str)
def test_a_new_head_reads_the_first_token_or_the_mean(tmp_path: Path, case: Case) -> None:
    saved(tmp_path / "model", case, "encoder")
    layers, own = read(tmp_path / "model", None)
    assert read(tmp_path / "model", "cls") == (layers, "cls")
    match case.model_type:
        case "bert" | "roberta" | "xlm-roberta" | "camembert":
            assert read(tmp_path / "model", "mean") == (layers + 1, own)
        case "modernbert":
            assert read(tmp_path / "model", "mean") == (layers, "mean")
        case _:
            with pytest.raises(UserError, match="pooling: mean is for a new head on a BERT, a RoBERTa"):
                read(tmp_path / "model", "mean")


def test_a_trained_head_reads_what_it_has_learned_to_read(tmp_path: Path) -> None:
    case = next(case for case in FIRST if case.model_type == "bert")
    saved_task(tmp_path / "model", case, "classification")
    layers, own = read(tmp_path / "model", None)
    assert read(tmp_path / "model", "cls") == (layers, own)
    with pytest.raises(UserError, match="has a trained head or another architecture; leave it out"):
        read(tmp_path / "model", "mean")
