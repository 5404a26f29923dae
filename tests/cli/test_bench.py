from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.finetunes import spam_config, spam_files
from tests.folders.folders import saved_task
from tests.small_runs import small_config, write_config

SHAPE = {"what", "preset", "device", "precision", "ms_per_step", "tokens_per_s", "tflops", "matmul_tflops"}
TINY = ("--preset", "tiny", "--vocab-size", 100, "--batch-size", 4, "--length", 16, "--device", "cpu")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertcli.advice.bench.timing.SIZES", {"cpu": (64,)})


@pytest.fixture
def config(corpus: Path, tmp_path: Path) -> Path:
    return write_config(tmp_path / "c.yaml", small_config(corpus, tmp_path / "run"))


def measured(run_bertcli, *arguments: object) -> dict:
    code, out, err = run_bertcli("bench", *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_step_of_no_text(run_bertcli) -> None:
    step = measured(run_bertcli, "step", *TINY, "--precision", "fp32", "--steps", 2)
    assert set(step) >= SHAPE | {"peak_memory_mb", "matmul_share", "ms_quartiles"}
    assert (step["what"], step["preset"], step["length"], step["precision"]) == ("step", "tiny", 16, "fp32")
    assert step["tokens_per_s"] == pytest.approx(4 * 16 / step["ms_per_step"] * 1e3)
    assert step["matmul_share"] == pytest.approx(step["tflops"] / step["matmul_tflops"])


def test_a_step_of_a_configs_text(run_bertcli, config: Path) -> None:
    step = measured(run_bertcli, "step", "--config", config, "--set", "training.batch_size=6", "--steps", 2)
    assert (step["batch_size"], step["micro_batch_size"], step["length"]) == (6, 4, 32)
    assert not (config.parent / "run" / "checkpoints").exists()


def test_the_stream(run_bertcli, config: Path) -> None:
    stream = measured(run_bertcli, "stream", config, "--batches", 3)
    assert stream["workers"] == 0
    assert 8 * 16 < stream["tokens_per_s"] / stream["batches_per_s"] <= 8 * 32


def test_the_tokenizer(run_bertcli, config: Path, tmp_path: Path) -> None:
    tokens = measured(run_bertcli, "tokenize", config, "--vocab-size", 300, "--megabytes", 0.05)
    assert tokens["vocab_size"] <= 300
    assert 0.05 <= tokens["megabytes"] < 0.06
    assert tokens["tokens_per_s"] > 0


@pytest.mark.parametrize("task", ["classification", "token-classification"])
def test_fine_tuning_beside_padding(run_bertcli, tmp_path: Path, task: str) -> None:
    value = spam_config(spam_files(tmp_path), task={"max_length": 64})
    if task == "token-classification":
        value["task"] = {"type": task, "train": "wnut17-dev", "max_length": 64}
    config = write_config(tmp_path / "c.yaml", value)
    tuned = measured(run_bertcli, "finetune", config, "--steps", 2)
    assert tuned["speedup"] == pytest.approx(tuned["rows_per_s"] / tuned["padded_rows_per_s"])
    assert 3 <= tuned["tokens_per_row"] < tuned["max_length"]
    assert tuned["tokens_per_s"] == pytest.approx(tuned["rows_per_s"] * tuned["tokens_per_row"])
    assert not (tmp_path / "run").exists()


def test_prediction_beside_padding(run_bertcli, tmp_path: Path) -> None:
    saved_task(tmp_path / "model", "tokens", max_positions=128)
    texts = tmp_path / "texts.txt"
    texts.write_text("the cat sat\nthe dog ran\nit was dark\n")
    model = run_bertcli("bench", "predict", tmp_path / "model", "--input", texts, "--json", "--device", "cpu")
    assert model[0] == 0, model[2]
    predicted = json.loads(model[1])
    assert predicted["texts"] == 3
    assert predicted["tokens_per_text"] == 5
    assert predicted["speedup"] == pytest.approx(predicted["texts_per_s"] / predicted["padded_texts_per_s"])


def test_a_fresh_model_reads_the_bundled_messages(run_bertcli) -> None:
    options = ("--preset", "tiny", "--vocab-size", 300, "--max-length", 16, "--texts", 5)
    predicted = measured(run_bertcli, "predict", *options, "--device", "cpu")
    assert (predicted["texts"], predicted["max_length"]) == (5, 16)


def test_a_model_of_pairs_needs_pairs(run_bertcli, tmp_path: Path) -> None:
    saved_task(tmp_path / "model", "classification")
    code, _, err = run_bertcli("bench", "predict", tmp_path / "model")
    assert code == 2
    assert "this model reads several (classification); give its rows: --input FILE" in err


def test_a_model_of_vectors_predicts_nothing(run_bertcli, models: Path) -> None:
    code, _, err = run_bertcli("bench", "predict", models / "vectors")
    assert (code, "its answers are vectors" in err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("step", "--set", "seed=1"), "--set: only with --config"),
        (("tokenize", "--set", "seed=1"), "--set: only with a config"),
        (("step", "--device", "cuda:99"), "device: 'cuda:99' is set"),
        (("stream", "nowhere.yaml"), "nowhere.yaml: no such config file"),
    ],
)
def test_errors(run_bertcli, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run_bertcli("bench", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_a_table_to_read(run_bertcli) -> None:
    code, out, _ = run_bertcli("bench", "step", *TINY, "--steps", 1)
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} >= SHAPE
