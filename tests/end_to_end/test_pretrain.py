"""The main job through the real command line: raw text in, a model out that fills masks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import transformers

from bertcli.folders.lengths import trained_length
from tests.small_runs import read_rows, run_cli, run_warm, small_config, write_config


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run long enough for its losses to fall."""
    folder = tmp_path_factory.mktemp("end_to_end")
    config = small_config(
        corpus,
        folder / "run",
        training={"steps": 240, "batch_size": 32, "micro_batch_size": "auto", "learning_rate": 1e-2},
        evaluation={"every_steps": 75, "batches": 10},
        logging={"every_steps": 10},
    )
    result = run_warm("pretrain", write_config(folder / "config.yaml", config))
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{folder / 'run' / 'model'}\n"
    return folder / "run"


def test_the_loss_starts_where_it_should_and_falls(run: Path) -> None:
    train = read_rows(run / "metrics.jsonl", "train")
    assert train[0]["mlm_loss"] == pytest.approx(6.11, abs=0.25)  # one draw of logits of deviation 0.5
    assert train[0]["nsp_loss"] == pytest.approx(0.693, abs=0.15)
    heldout = read_rows(run / "metrics.jsonl", "heldout")
    assert heldout[-1]["mlm_loss"] < heldout[0]["mlm_loss"] - 0.03
    assert heldout[-1]["mlm_loss"] < 5.36  # the unigram entropy of this corpus: context was learned


def test_the_run_folder_is_complete(run: Path) -> None:
    assert {path.name for path in run.iterdir()} == {
        *(".lock", ".bertcli.json", "config.yaml", "data.json", "metrics.jsonl", "checkpoints", "model"),
        "verdict.json",
    }
    assert {path.name for path in (run / "model").iterdir()} == {
        *("config.json", "model.safetensors", "vocab.txt"),
        *("tokenizer.json", "tokenizer_config.json", "README.md", "manifest.json"),
    }
    config = (run / "config.yaml").read_text()
    assert "auto" not in config
    assert "strip_accents: false" in config
    for model in (run / "model", *(run / "checkpoints").glob("*/model")):
        assert trained_length(model) == 32
    card = (run / "model" / "README.md").read_text()
    for fact in ("| steps | 240 of 32 rows", "| mlm |", "| nsp |", "BertForPreTraining.from_pretrained"):
        assert fact in card


def test_transformers_loads_the_model_unchanged(run: Path) -> None:
    loaded: Any = transformers.BertForPreTraining.from_pretrained(run / "model", output_loading_info=True)
    model, info = loaded
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(run / "model")
    assert model(**tokenizer("It was the end.", return_tensors="pt")).prediction_logits.shape[-1] == 400


def test_the_model_fills_masks_and_judges_pairs(run: Path) -> None:
    result = run_warm("predict-mask", run, "The [MASK] of the [MASK] was dark.", "--top-k", "3", "--json")
    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert [len(mask["predictions"]) for mask in answer["masks"]] == [3, 3]
    assert "[MASK]" not in answer["filled"]
    result = run_cli("predict-next", run, "It was late.", "We went home.", "--json")
    assert 0 <= json.loads(result.stdout)["is_next_probability"] <= 1


def test_evaluate_gives_the_figures_of_any_text(run: Path, corpus: Path) -> None:
    command = ("evaluate", run, "--corpus", corpus, "--max-length", 32, "--batches", 8, "--json")
    results = [run_cli(*command) for _ in range(2)]
    assert results[0].returncode == 0, results[0].stderr
    assert results[0].stdout == results[1].stdout  # the masks are fixed
    scores = json.loads(results[0].stdout)
    assert scores["mlm_loss"] < 5.36
    assert scores["perplexity"] == pytest.approx(2.718281828 ** scores["mlm_loss"])
    assert scores["nsp_majority"] == 0.5
    assert scores["tokens"] > 1_000


def test_domain_adaptation_goes_on_from_the_model(run: Path, corpus: Path, tmp_path: Path) -> None:
    config = small_config(
        corpus,
        tmp_path / "adapted",
        corpus={"store": str(tmp_path / "store")},
        model={"init_from": str(run)},
        training={"steps": 2},
    )
    del config["model"]["layers"], config["model"]["hidden"], config["model"]["heads"], config["tokenizer"]
    result = run_cli("pretrain", write_config(tmp_path / "c.yaml", config))
    assert result.returncode == 0, result.stderr
    assert "starting from the weights of" in result.stderr
    first = read_rows(tmp_path / "adapted" / "metrics.jsonl", "train")[0]
    assert first["mlm_loss"] < 5.6  # what was learned is still there
    assert "warning: a word is cut" not in result.stderr
    recorded = (tmp_path / "adapted" / "config.yaml").read_text()
    assert "preset: null" in recorded
    assert "hidden: 32" in recorded
    assert "vocab_size: 400" in recorded


def test_mlm_alone_trains_and_predicts(corpus: Path, tmp_path: Path) -> None:
    config = small_config(corpus, tmp_path / "run", data={"objective": "mlm"}, training={"steps": 3})
    result = run_cli("pretrain", write_config(tmp_path / "c.yaml", config))
    assert result.returncode == 0, result.stderr
    assert "nsp_loss" not in read_rows(tmp_path / "run" / "metrics.jsonl")[0]
    filled = run_cli("predict-mask", tmp_path / "run", "It was [MASK].")
    assert filled.returncode == 0, filled.stderr
    refused = run_cli("predict-next", tmp_path / "run", "It was late.", "We left.")
    assert refused.returncode == 2
    scores = run_cli("evaluate", tmp_path / "run", "--corpus", corpus, "--max-length", 32, "--json")
    measured = json.loads(scores.stdout)
    assert "nsp_loss" not in measured
    assert measured["tokens"] > 10_000  # all of the text
