"""A fine-tuning config: what it needs, and what is refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config, load_config, save_config
from bertcli.config.task import TaskSettings
from bertcli.samples import CONFIGS
from bertcli.system.errors import UserError

TASK = {"type": "classification", "train": "spam.tsv", "text": "message", "label": "label"}
SHIPPED = ["spam", "ner", "squad", *(name for name in CONFIGS if name.startswith("glue/"))]


def config(task: dict[str, Any] | None = None, **values: Any) -> FinetuneConfig:
    whole = {"output_dir": "run", "model": "model", "task": TASK | (task or {})} | values
    return check_config(FinetuneConfig, whole, "test")


def test_six_keys_are_enough():
    found = config()
    assert found.training.epochs == 3.0
    assert found.training.learning_rate == "auto"
    assert found.training.batch_size == 32
    assert found.task.text_columns == ("message",)
    assert config({"text": ["a", 1]}).task.text_columns == ("a", 1)
    assert config({"type": "token-classification", "text": None}).task.text_columns == ()


def test_a_model_keeps_the_settings_and_nothing_of_the_run():
    settings = config({"dev_fraction": 0.1, "max_length": 64}).task.settings
    assert type(settings) is TaskSettings
    assert settings == TaskSettings(type="classification", text="message", label="label", max_length=64)


def test_a_config_is_saved_whole_and_read_back(tmp_path: Path):
    found = config({"text": ["a", 0], "columns": ["b", "a", "label"], "class_weights": {"x": 2.0, 1: 3.0}})
    assert found.task.class_weights == {"x": 2.0, "1": 3.0}
    save_config(found, tmp_path / "config.yaml")
    assert load_config(FinetuneConfig, tmp_path / "config.yaml") == found


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_configs_are_right(name: str):
    load_config(FinetuneConfig, Path(name))


CHOICES = {"type": "multiple-choice", "choices": "choices"}
QUESTIONS = {"type": "question-answering", "text": None}
WORDS = {"type": "token-classification"}


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"type": "translation"}, "task.type: input should be 'classification', 'regression'"),
        ({"text": None}, r"text: name the column of the text, or two columns for pairs \(classification\)"),
        ({"type": "regression", "text": None}, r"two columns for pairs \(regression\)"),
        ({**CHOICES, "text": None}, r"two columns for pairs \(multiple-choice\)"),
        ({"text": ["a", "b", "c"]}, "task: text: one column, or two for pairs"),
        ({"text": -1}, "task.text: input should be greater than or equal to 0, got -1"),
        ({"label": None}, "label: name the column of the label"),
        ({"type": "regression", "label": None}, "label: name the column of the label"),
        (
            {**CHOICES, "choices": None},
            "choices: name the column of each choice, or the one that holds their list",
        ),
        ({"choices": "a"}, "choices is for type: multiple-choice, not classification"),
        ({**CHOICES, "choices": ["a"]}, "task.choices: list should have at least 2 items"),
        (
            {"type": "regression", "multi_label": True},
            "multi_label is for type: classification, not regression",
        ),
        ({**WORDS, "text": ["a", "b"]}, r"text: one column, not a pair \(token-classification\)"),
        ({**QUESTIONS, "text": "a"}, "text: two columns, the question's and the context's"),
        ({"format": "conll"}, "format: conll is for type: token-classification, not classification"),
        (
            {**WORDS, "format": "squad"},
            "format: squad is for type: question-answering, not token-classification",
        ),
        (
            {"format": "trec", "type": "regression"},
            "format: trec is for type: classification, not regression",
        ),
        ({**WORDS, "format": "fasttext"}, "format: fasttext is for type: classification, not token-class"),
        ({"format": "xml"}, "task.format: input should be 'auto', 'tsv'"),
        ({"columns": ["a", "b", "a"]}, "columns: a name is given twice"),
        ({"columns": []}, "task.columns: list should have at least 1 item"),
        ({"quoting": "yes"}, "task.quoting: input should be 'auto', 'csv' or 'none'"),
        ({"max_length": 8}, "task.max_length: input should be greater than or equal to 16, got 8"),
        ({"doc_stride": -1}, "task.doc_stride: input should be greater than or equal to 0, got -1"),
        (
            {**WORDS, "windows": "mean"},
            "windows: mean is for type: classification or regression or sentence-embedding, not token-class",
        ),
        ({"pooling": "max"}, "pooling: max is for type: sentence-embedding; choose mean or cls"),
        ({**WORDS, "pooling": "mean"}, "pooling is for type: classification or regression or sentence-embed"),
        ({"windows": "all"}, "task.windows: input should be 'first', 'mean' or 'max', got 'all'"),
        ({"max_windows": 0}, "task.max_windows: input should be greater than or equal to 1, got 0"),
        ({"dev": "a", "dev_fraction": 0.1}, "give dev or dev_fraction, not both"),
        ({"dev_fraction": 1.0}, "task.dev_fraction: input should be less than 1, got 1.0"),
        (
            {"class_weights": "balanced", "multi_label": True},
            "class_weights is for type: classification with one",
        ),
        ({"class_weights": "balanced", "type": "regression"}, "class_weights is for type: classification"),
        ({"class_weights": {"x": 0}}, "task.class_weights.*greater than 0"),
        ({"threshold": True}, "task.threshold: expected a number from 0 to 1, .*; got True"),
        ({"threshold": {"x": 1.5}}, "task.threshold: expected a number from 0 to 1, .*; got {'x': 1.5}"),
        ({"threshold": "precision=2"}, "task.threshold: .*auto, or precision=0.95; got 'precision=2'"),
        ({"separator": "||"}, r"task.separator: string should have at most 1 character, got '\|\|'"),
        ({"separator": ""}, "task.separator: it is empty; a bare . begins .* write .* in quotes"),
        ({"separator": '"'}, "task.separator: fields cannot be separated by a quote or the end of a line"),
        ({"separator": "\n"}, "task.separator: fields cannot be separated by a quote or the end of a line"),
        (
            {"positive_label": "x", "type": "regression"},
            "positive_label is for type: classification, not reg",
        ),
        (
            {"positive_label": "x", "multi_label": True},
            "positive_label is for two labels, one a text: not with multi_label",
        ),
        ({"positive_label": True}, "task.positive_label: YAML reads a bare yes, no, .* write it in quotes"),
        ({"lable": "x"}, "task.lable: unknown key; did you mean task.label?"),
        ({"label": False}, "task.label: input should be a valid string, got False"),  # YAML's bare no
    ],
)
def test_impossible_tasks_are_refused(task: dict, message: str):
    with pytest.raises(UserError, match=message):
        config(task)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seeds": []}, "seeds: list should have at least 1 item"),
        ({"seeds": [1, 2, 1]}, "seeds: a seed is given twice"),
        ({"seed": -1}, "seed: input should be greater than or equal to 0, got -1"),
        (
            {"training": {"early_stopping": 2}},
            "training.early_stopping needs task.dev, task.dev_fraction or f",
        ),
        ({"folds": 1}, "folds: input should be greater than or equal to 2, got 1"),
        ({"folds": 5, "seeds": [1, 2]}, "folds takes the place of seeds: leave out one or the other"),
        ({"fold": 2}, r"fold: 2 is over the number of folds \(none\)"),
        ({"folds": 3, "fold": 4}, r"fold: 4 is over the number of folds \(3\)"),
        (
            {"task": {"type": "sentence-embedding", "label": None}, "distillation": {"teacher": "x"}},
            "distillation is for tasks with answers, not for sentence-embedding",
        ),
        ({"training": {"epochs": 0}}, "training.epochs: input should be greater than 0, got 0"),
        (
            {"training": {"warmup_ratio": 1.5}},
            "training.warmup_ratio: input should be less than or equal to 1",
        ),
        ({"training": {"layer_decay": 0}}, "training.layer_decay: input should be greater than 0, got 0"),
        (
            {"training": {"freeze_layers": -1}},
            "training.freeze_layers: input should be greater than or equal",
        ),
        ({"training": {"steps": 5}}, "training.steps: unknown key"),
        (
            {"evaluation": {"every_steps": 0}},
            "evaluation.every_steps: input should be greater than or equal to 1",
        ),
        (
            {"checkpoint": {"keep_last": 0}},
            "checkpoint.keep_last: input should be greater than or equal to 1",
        ),
    ],
)
def test_impossible_runs_are_refused(values: dict, message: str):
    with pytest.raises(UserError, match=message):
        config(**values)


@pytest.mark.parametrize(
    ("task", "folds", "message"),
    [
        ({"dev": "a"}, 5, "folds takes the place of task.dev: leave out one or the other"),
        ({"dev_fraction": 0.1}, 5, "folds takes the place of task.dev_fraction"),
        ({"group": "who"}, None, "task.group: nothing is split without task.dev_fraction or folds"),
        ({"group": "who", "dev": "a"}, None, "task.group: nothing is split without"),
        (
            {"type": "sentence-embedding", "text": "a", "label": None},
            5,
            "folds: plain text has no right answers",
        ),
    ],
)
def test_folds_and_groups_contradict_other_keys(task: dict, folds: int | None, message: str) -> None:
    with pytest.raises(UserError, match=message):
        config(task, folds=folds)


def test_a_pretraining_config_is_recognized() -> None:
    with pytest.raises(UserError, match="has a section corpus, as for bertcli pretrain") as error:
        check_config(FinetuneConfig, {"output_dir": "x", "corpus": {"files": ["y"]}, "data": {}}, "test")
    assert "unknown key" not in str(error.value)
