"""Sentence vectors through the real command line: pairs, scores, triplets and plain text."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr
from transformers import AutoModel, AutoTokenizer

from tests.finetunes import rows_but_times, write_model
from tests.small_runs import run_cli, start_and_signal, write_config

POOLING = {
    "mean": "pooling_mode_mean_tokens",
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
}
WORDS = ["red", "blue", "green", "old", "new", "small", "large", "cold", "warm", "dark"]


def write_pairs(path: Path, rows: int, start: int = 0) -> Path:
    """Columns a, b (the same two words, in another order), c (other words) and score."""
    lines = ["a\tb\tc\tscore"]
    for number in range(start, start + rows):
        one, two, other = WORDS[number % 10], WORDS[number // 10 % 10], WORDS[(number + 5) % 10]
        lines.append(f"{one} {two} {number}\t{number} {two} {one}\t{other} {number + 1}\t{number % 6}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vectors")
    write_model(folder / "bert")
    write_pairs(folder / "train.tsv", rows=48)
    write_pairs(folder / "dev.tsv", rows=16, start=48)
    (folder / "lines.txt").write_text("\n".join(f"{a} {b}" for a in WORDS[:6] for b in WORDS[:6]) + "\n")
    return folder


def config(files: Path, run: Path, task: dict[str, Any], **training: Any) -> dict[str, Any]:
    return {
        "output_dir": str(run),
        "seed": 7,
        "model": str(files / "bert"),
        "task": {"type": "sentence-embedding", "max_length": 24, **task},
        "training": {"batch_size": 16, "learning_rate": 1e-3, "epochs": 2, "device": "cpu", **training},
        "logging": {"every_steps": 1},
    }


def pairs(files: Path, **keys: Any) -> dict[str, Any]:
    return {"train": str(files / "train.tsv"), "dev": str(files / "dev.tsv"), **keys}


def finetuned(tmp_path: Path, value: dict[str, Any], *options: str) -> dict[str, Any]:
    done = run_cli("finetune", write_config(tmp_path / "config.yaml", value), "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_pairs_are_found_and_the_folder_is_one_of_sentence_transformers(files: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = finetuned(tmp_path, config(files, run, pairs(files, text=["a", "b"]), epochs=3))
    assert done["candidates"] == 16
    assert 0 < done["recall_at_1"] <= done["mrr"] <= done["recall_at_10"] <= 1
    modules = json.loads((run / "model" / "modules.json").read_text())
    assert [each["type"].rpartition(".")[2] for each in modules] == ["Transformer", "Pooling"]
    embedded = run_cli("embed", run, "red old 3", "--json")
    vector = np.array(json.loads(embedded.stdout)["vector"])
    assert vector.shape == (32,)
    evaluated = run_cli("evaluate", run, "--data", files / "dev.tsv", "--text", "a", "--text", "b", "--json")
    assert json.loads(evaluated.stdout)["mrr"] == pytest.approx(done["mrr"], abs=1e-6)
    refused = run_cli("predict", run, "red")
    assert refused.returncode == 2
    assert "its answers are vectors: give it to bertcli embed" in refused.stderr


@pytest.mark.parametrize("mode", ["mean", "cls", "max"])
def test_the_vectors_are_those_of_transformers_and_the_pooling_that_the_folder_names(
    files: Path, tmp_path: Path, mode: str
) -> None:
    folder = tmp_path / "run" / "model"
    finetuned(tmp_path, config(files, tmp_path / "run", pairs(files, text=["a", "b"], pooling=mode)))
    named = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert [key for key, value in named.items() if value is True] == [POOLING[mode]]
    texts = ["red old 3", "a small and warm and dark new house", "x"]
    tokens = AutoTokenizer.from_pretrained(folder)(
        texts, padding=True, truncation=True, max_length=24, return_tensors="pt"
    )
    with torch.no_grad():
        hidden_BTD = AutoModel.from_pretrained(folder)(**tokens).last_hidden_state
    mask_BT1 = tokens["attention_mask"][:, :, None]
    pooled = {
        "mean": (hidden_BTD * mask_BT1).sum(dim=1) / mask_BT1.sum(dim=1),
        "cls": hidden_BTD[:, 0],
        "max": hidden_BTD.masked_fill(mask_BT1 == 0, -torch.inf).amax(dim=1),
    }[mode]
    lines = run_cli("embed", folder, *texts, "--json").stdout.splitlines()
    vectors = torch.tensor([json.loads(line)["vector"] for line in lines])
    torch.testing.assert_close(vectors, pooled, rtol=0, atol=1e-5)


def test_a_run_that_is_killed_ends_as_one_that_is_not(files: Path, tmp_path: Path) -> None:
    task = pairs(files, text=["a", "b", "c"])
    values = [
        config(files, tmp_path / name, task, micro_batch_size=12) | {"checkpoint": {"every_steps": 2}}
        for name in ("whole", "killed")
    ]
    finetuned(tmp_path, values[0])
    path = write_config(tmp_path / "killed.yaml", values[1])
    start_and_signal("finetune", path, tmp_path / "killed", step=3, number=signal.SIGKILL)
    finetuned(tmp_path, values[1], "--resume")
    whole, killed = (rows_but_times(tmp_path / name / "metrics.jsonl") for name in ("whole", "killed"))
    assert killed == whole


def vectors_of(model: Path, file: Path, target: Path, column: str = "text") -> NDArray[np.float32]:
    """Of length 1, by `bertcli embed`."""
    done = run_cli(
        "embed", model, "--input", file, "--text", column, "--normalize", "--output", target / "v.npy"
    )
    assert done.returncode == 0, done.stderr
    return np.load(target / "v.npy")


def test_scores_of_pairs_give_the_correlation_of_their_cosines(files: Path, tmp_path: Path) -> None:
    run, file = tmp_path / "run", files / "dev.tsv"
    done = finetuned(tmp_path, config(files, run, pairs(files, text=["a", "b"], label="score")))
    assert done["verdict"]
    scores = [int(line.split("\t")[-1]) for line in file.read_text().splitlines()[1:]]
    cosines = (vectors_of(run, file, tmp_path, "a") * vectors_of(run, file, tmp_path, "b")).sum(axis=1)
    evaluated = json.loads(run_cli("evaluate", run, "--data", file, "--json").stdout)
    expected: Any = spearmanr(scores, cosines)
    assert evaluated["spearman"] == pytest.approx(expected.statistic, abs=1e-6)
    assert evaluated["pearson"] == pytest.approx(np.corrcoef(scores, cosines)[0, 1], abs=1e-4)


def test_plain_text_needs_no_pairs_and_moves_its_texts_apart(files: Path, tmp_path: Path) -> None:
    run, file = tmp_path / "run", files / "lines.txt"
    finetuned(tmp_path, config(files, run, {"train": str(file)}, epochs=1))
    before, after = (vectors_of(model, file, tmp_path) for model in (files / "bert", run))
    assert (after @ after.T).mean() < (before @ before.T).mean() - 0.01
    refused = run_cli("evaluate", run, "--data", files / "lines.txt")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "lines.txt: plain text has no right answers to evaluate by; name the columns" in refused.stderr
    pairs = run_cli("evaluate", run, "--data", files / "dev.tsv", "--text", "a", "--text", "b", "--json")
    assert json.loads(pairs.stdout)["candidates"] == 16


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"text": ["a", "b", "c"], "label": "score"}, "with a label, the score of a pair, two columns"),
        ({"text": "a"}, "plain text has no right answers to evaluate by"),
    ],
)
def test_each_message(files: Path, tmp_path: Path, task: dict[str, Any], message: str) -> None:
    value = config(files, tmp_path / "run", pairs(files, **task))
    done = run_cli("finetune", write_config(tmp_path / "config.yaml", value))
    assert done.returncode == 2
    assert message in done.stderr
