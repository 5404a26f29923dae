"""What a pretraining config may say, and that the impossible is refused in words."""

from __future__ import annotations

import pytest

from bertcli.config.corpus import CorpusConfig
from bertcli.config.load import check_config
from bertcli.config.model import PRESETS, ModelConfig
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import AUTO
from bertcli.system.errors import UserError

MINIMAL = {"output_dir": "run", "corpus": {"files": ["classics"]}}


def test_defaults_need_only_output_dir_and_files() -> None:
    config = check_config(PretrainConfig, MINIMAL, "test")
    assert (config.training.batch_size, config.training.weight_decay) == (AUTO, 0.01)
    assert config.data.mask_split == AUTO


@pytest.mark.parametrize(
    ("preset", "sizes"),
    [
        ("tiny", (2, 128, 2, 512)),
        ("micro", (2, 256, 4, 1024)),
        ("mini", (4, 256, 4, 1024)),
        ("small", (4, 512, 8, 2048)),
        ("medium", (8, 512, 8, 2048)),
        ("base", (12, 768, 12, 3072)),
        ("large", (24, 1024, 16, 4096)),
    ],
)
def test_presets(preset, sizes) -> None:
    assert ModelConfig(preset=preset).sizes() == sizes
    assert len(PRESETS) == 7


def test_a_size_given_replaces_the_presets_and_what_follows_from_it() -> None:
    assert ModelConfig(preset="tiny", hidden=192).sizes() == (2, 192, 3, 768)
    assert ModelConfig(preset="tiny", hidden=60, heads=3, layers=5, feed_forward=99).sizes() == (5, 60, 3, 99)


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        ("data", {"max_length": 5}, "data.max_length: input should be greater than or equal to 16, got 5"),
        (
            "data",
            {"mask_rate": 1.5},
            r"data.mask_rate: .+ less than 1 \(or \[start, end\] or auto\), got 1.5",
        ),
        ("data", {"mask_split": [0.5, 0.1, 0.1]}, "data: mask_split must add up to 1, got 0.7"),
        ("data", {"max_length": 600}, r"data.max_length \(600\) is longer than model.max_positions \(512\)"),
        ("model", {"hidden": 100, "heads": 3}, "model: heads must divide hidden: 100 / 3 leaves 1"),
        ("training", {"steps": 0}, "training.steps: input should be greater than or equal to 1, got 0"),
        ("training", {"steps": 5, "epochs": 1}, "training: give steps or epochs, not both"),
        ("training", {"learning_rate": float("nan")}, "training.learning_rate"),
        (
            "training",
            {"precision": "fp8"},
            r"training.precision: input should be 'bf16', 'fp16' or 'fp32' \(or auto\)",
        ),
        ("corpus", {"files": ["x"], "join_lines": True}, "join_lines: true needs document: file"),
        ("corpus", {"files": []}, "corpus: give files or sources: exactly one of both"),
        ("corpus", {"files": ["x"], "sources": [{"files": "y"}]}, "corpus: give files or sources"),
        ("corpus", {"sources": [{"files": []}]}, "corpus.sources.0.files: value should have at least 1 item"),
        ("corpus", {"sources": ["x"]}, "corpus.sources.0: expected a section"),
        ("corpus", {"sources": [{"files": "x", "wieght": 1}]}, "did you mean corpus.sources.0.weight"),
        (
            "corpus",
            {"files": ["x"], "temperature": 0.5},
            "corpus: temperature is for sources without weights",
        ),
        (
            "corpus",
            {"temperature": 0.5, "sources": [{"files": "x", "weight": 1}]},
            "corpus: temperature is for sources without weights",
        ),
        (
            "corpus",
            {"sources": [{"files": "x", "weight": 1}, {"files": "y"}]},
            "corpus: give every source a weight, or none",
        ),
        (
            "corpus",
            {"sources": [{"files": "x", "weight": [0, 1]}, {"files": "y", "weight": [0, 1]}]},
            "corpus: every weight is 0 in the first step",
        ),
        (
            "corpus",
            {"sources": [{"files": "x", "name": "a"}, {"files": "y", "name": "a"}]},
            "corpus: two sources have the name a",
        ),
        ("corpus", {"sources": [{"files": "x", "weight": -1}]}, "corpus.sources.0.weight"),
        ("corpus", {"sources": [{"files": "x", "name": "../y"}]}, "corpus.sources.0.name"),
        ("corpus", {"sources": [{"files": "x", "name": "a/b"}]}, "corpus.sources.0.name"),
        (
            "corpus",
            {"sources": [{"files": "x", "weight": True}]},
            "corpus.sources.0.weight: expected a number",
        ),
        ("training", {"batch_size": True}, "training.batch_size: expected a number, got true"),
        ("data", {"workers": False}, "data.workers: expected a number, got false"),
        (
            "corpus",
            {"files": ["x"], "format": "jsonl", "document": "file", "join_lines": True},
            "join_lines is for format: text, not jsonl",
        ),
    ],
)
def test_impossible_values_are_refused(section: str, values: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_config(PretrainConfig, MINIMAL | {section: values}, "test")


def test_a_fine_tuning_config_is_recognized() -> None:
    with pytest.raises(UserError, match="has a section task, as for bertcli finetune") as error:
        check_config(PretrainConfig, {"output_dir": "x", "model": "y", "task": {}}, "test")
    assert "unknown key" not in str(error.value)


def test_a_model_brings_its_own_tokenizer() -> None:
    value = MINIMAL | {"tokenizer": {"path": "vocab.txt"}, "model": {"init_from": "model"}}
    with pytest.raises(UserError, match=r"tokenizer.path or model.init_from, not both"):
        check_config(PretrainConfig, value, "test")


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ("texts/novels.txt.gz", "novels"),
        ("crawl/*.jsonl", "crawl"),
        ("crawl/**/*.txt", "crawl"),
        ("*.txt", "source"),
        ("/", "source"),
        ("..", "source"),
        ("classics", "classics"),
    ],
)
def test_a_source_without_a_name_has_that_of_its_files(files: str, name: str) -> None:
    corpus = CorpusConfig.model_validate({"sources": [{"files": files}] * 3})
    assert corpus.source_names == [name, f"{name} 2", f"{name} 3"]


def test_shares_of_nothing_are_alike() -> None:
    corpus = CorpusConfig.model_validate({"sources": [{"files": "a"}, {"files": "b"}]})
    assert corpus.shares([0, 0], 0, 1) == [0.5, 0.5]
