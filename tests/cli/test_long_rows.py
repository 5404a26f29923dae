"""Rows that are longer than any that the model was trained on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import transformers

from bertcli.folders.lengths import TRAINED, trained_length
from bertcli.folders.onnx_source import read_sample
from bertcli.folders.task_folder import load_task_folder
from tests.finetunes import spam_config, spam_files
from tests.small_runs import run_cli, small_config, write_config

Bertcli = Callable[..., tuple[int, str, str]]
LONG = "The night was dark and the moon was [MASK]. " * 4
SAID = "{} of {} rows are longer than 32 tokens, the longest that {} was trained on; its positions"


@pytest.fixture(scope="module")
def pretrained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 64 positions, pretrained on rows of 32 tokens."""
    folder = tmp_path_factory.mktemp("pretrained")
    value = small_config(corpus, folder / "run", model={"max_positions": 64}, training={"steps": 2})
    done = run_cli("pretrain", write_config(folder / "config.yaml", value))
    assert done.returncode == 0, done.stderr
    return folder / "run" / "model"


def test_the_folder_says_what_was_trained_where_transformers_reads_it(pretrained: Path) -> None:
    assert json.loads((pretrained / "tokenizer_config.json").read_text())["model_max_length"] == 32
    assert transformers.AutoTokenizer.from_pretrained(pretrained).model_max_length == 32
    assert transformers.AutoModel.from_pretrained(pretrained).config.max_position_embeddings == 64
    checkpoint = next((pretrained.parent / "checkpoints").iterdir()) / "model"
    assert trained_length(checkpoint) == 32


@pytest.mark.parametrize(("max_length", "trained"), [(16, 32), (48, 48)])
def test_going_on_keeps_the_longer_rows_and_says_which_positions_are_trained(
    run_bertcli: Bertcli, corpus: Path, pretrained: Path, tmp_path: Path, max_length: int, trained: int
) -> None:
    value = small_config(corpus, tmp_path / "run", data={"max_length": max_length}, training={"steps": 1}) | {
        "model": {"init_from": str(pretrained)}
    }
    value["corpus"]["store"], value["tokenizer"] = str(tmp_path / "store"), {}
    code, _, err = run_bertcli("pretrain", write_config(tmp_path / "config.yaml", value))
    assert code == 0, err
    assert trained_length(tmp_path / "run" / "model") == trained
    assert f"positions: the first {trained} of 64 are trained; if the model shall read longer rows" in err


def test_a_run_goes_on_with_more_positions_than_the_folder_has(
    run_bertcli: Bertcli, corpus: Path, pretrained: Path, tmp_path: Path
) -> None:
    value = small_config(corpus, tmp_path / "run", data={"max_length": 96}, training={"steps": 1}) | {
        "model": {"init_from": str(pretrained), "max_positions": 160}
    }
    value["corpus"]["store"], value["tokenizer"] = str(tmp_path / "store"), {}
    config = write_config(tmp_path / "config.yaml", value)
    code, out, err = run_bertcli("estimate", config, "--json")
    assert (code, json.loads(out)["parameters"]["total"] > 0) == (0, True), err
    code, _, err = run_bertcli("pretrain", config)
    assert code == 0, err
    assert "positions: 64 -> 160; the later ones begin as copies of the first 64" in err
    assert re.search(r"held-out text: [\d.]+ -> [\d.]+ nats a word", err)
    model = tmp_path / "run" / "model"
    assert json.loads((model / "config.json").read_text())["max_position_embeddings"] == 160
    assert trained_length(model) == 96
    code, _, err = run_bertcli("pretrain", config, "--resume", "--set", "training.steps=2")
    assert code == 0, err


def test_more_positions_are_what_a_too_long_row_asks_for(
    run_bertcli: Bertcli, corpus: Path, pretrained: Path, tmp_path: Path
) -> None:
    value = small_config(corpus, tmp_path / "run", data={"max_length": 96}) | {
        "model": {"init_from": str(pretrained)},
        "tokenizer": {},
    }
    value["corpus"]["store"] = str(tmp_path / "store")
    code, _, err = run_bertcli("pretrain", write_config(tmp_path / "config.yaml", value))
    assert code == 2
    assert "(64); lower data.max_length, or raise model.max_positions" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict-mask", "MODEL", LONG, "It was [MASK]."),
        ("embed", "MODEL", LONG, "It was."),
    ],
)
def test_predictions_count_long_rows_and_say_so_once(
    run_bertcli: Bertcli, pretrained: Path, arguments: tuple[str, ...]
) -> None:
    given = [argument.replace("MODEL", str(pretrained)) for argument in arguments]
    code, out, err = run_bertcli(*given, "--json")
    assert (code, len(out.splitlines())) == (0, 2)
    assert err.count("warning") == 1
    assert SAID.format(1, 2, pretrained) in err
    assert "with a larger data.max_length" in err
    code, _, err = run_bertcli(*given[:2], given[3])
    assert (code, err) == (0, "")


def test_attention_says_it_of_a_pretrained_and_of_a_task_model(
    run_bertcli: Bertcli, pretrained: Path, tmp_path: Path
) -> None:
    code, _, err = run_bertcli("attention", pretrained, LONG)
    assert (code, err.count(SAID.format(1, 1, pretrained))) == (0, 1)
    code, _, err = run_bertcli("attention", pretrained, "It was.")
    assert (code, err) == (0, "")
    spam_files(tmp_path)
    task: dict[str, Any] = {"max_length": 48}
    value = spam_config(tmp_path, model=str(pretrained), task=task, training={"epochs": 0.1})
    assert run_bertcli("finetune", write_config(tmp_path / "config.yaml", value))[0] == 0
    model = tmp_path / "run" / "model"
    assert (
        transformers.AutoTokenizer.from_pretrained(model).model_max_length == 48
    )  # a pipeline cuts there too
    forget(model, 16)
    code, _, err = run_bertcli("attention", model, LONG)
    assert (code, err.count("rows are longer than 16 tokens")) == (0, 1), err


def forget(model: Path, length: int) -> None:
    """Let the folder say that rows up to `length` tokens were trained."""
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {TRAINED: length}))


def test_pairs_and_whole_corpora_are_counted_as_well(
    run_bertcli: Bertcli, corpus: Path, pretrained: Path
) -> None:
    code, _, err = run_bertcli("predict-next", pretrained, "It was dark. " * 7, "It was.")
    assert (code, SAID.format(1, 1, pretrained) in err) == (0, True)
    few = ("--batches", "2", "--batch-size", "4")
    code, _, err = run_bertcli("evaluate", pretrained, "--corpus", corpus, "--max-length", "64", *few)
    found = re.search(r"(\d+) of (\d+) rows are longer than 32 tokens", err)
    assert code == 0
    assert found, err
    assert 0 < int(found[1]) <= int(found[2])
    code, _, err = run_bertcli("evaluate", pretrained, "--corpus", corpus, *few)
    assert (code, "longer" in err, "rows of 32 tokens" in err) == (0, False, True)


def test_finetuning_says_it_and_then_knows_its_own_rows(
    run_bertcli: Bertcli, pretrained: Path, tmp_path: Path
) -> None:
    spam_files(tmp_path)
    task: dict[str, Any] = {"max_length": 64}
    value = spam_config(tmp_path, model=str(pretrained), task=task, training={"epochs": 1})
    config = write_config(tmp_path / "config.yaml", value)
    code, _, err = run_bertcli("finetune", config)
    assert code == 0, err
    assert err.count("rows are longer than 32 tokens") == 1
    assert "of 128 rows are longer" in err  # of train and dev together
    model = tmp_path / "run" / "model"
    assert trained_length(model) == 64
    for command in (("predict", model, LONG), ("evaluate", model, "--data", tmp_path / "dev.tsv")):
        code, _, err = run_bertcli(*command)
        assert (code, "rows are longer" in err) == (0, False), err
    forget(model, 32)
    for command in (("predict", model, LONG), ("evaluate", model, "--data", tmp_path / "dev.tsv")):
        code, _, err = run_bertcli(*command)
        assert (code, err.count("rows are longer than 32 tokens")) == (0, 1), err
    for name, words in (
        ("train", "warning: {} is the training file of"),
        ("dev", "note: {} is the dev file of"),
    ):
        file = tmp_path / f"{name}.tsv"
        _, _, err = run_bertcli("evaluate", model, "--data", file)
        assert words.format(file) in err
    (tmp_path / "new.tsv").write_text("".join((tmp_path / "dev.tsv").read_text().splitlines(True)[:9]))
    assert "file of" not in run_bertcli("evaluate", model, "--data", tmp_path / "new.tsv")[2]
    rows = read_sample(None, load_task_folder(model).settings, None, folder=model)
    assert {text for row in rows for text in row.texts} <= set(
        (tmp_path / "dev.tsv").read_text().replace("\t", "\n").split("\n")
    )
    code, out, _ = run_bertcli("check-data", config)
    assert (code, "rows are longer than 32 tokens, the longest" in out) == (0, True)
