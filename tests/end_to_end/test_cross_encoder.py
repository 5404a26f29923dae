"""Pairs of a question and a passage, relevant or not, through the real command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from bertcli.tasks.scores import reranking_scores
from tests.finetunes import write_model
from tests.small_runs import read_rows, run_cli, write_config

WORDS = ["red", "blue", "green", "old", "new", "small", "large", "cold", "warm", "dark"]
RANKING = ("mrr_at_10", "ndcg_at_10", "map")


def write_passages(path: Path, questions: range) -> Path:
    """Four passages a question, one of them with its word."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["question", "passage", "relevant"])
        for number in questions:
            for place in range(4):
                word = WORDS[(number + 3 * place) % 10]
                table.writerow([f"{WORDS[number % 10]} {number}", f"{word} {place}", int(place == 0)])
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    write_model(folder / "bert")
    write_passages(folder / "train.csv", range(24))
    write_passages(folder / "dev.csv", range(24, 36))
    return folder


def config(files: Path, run: Path, **task: Any) -> dict[str, Any]:
    return {
        "output_dir": str(run),
        "seed": 7,
        "model": str(files / "bert"),
        "task": {
            "type": "regression",
            "sigmoid": True,
            "train": str(files / "train.csv"),
            "text": ["question", "passage"],
            "label": "relevant",
            "metric": "ndcg_at_10",
            "max_length": 24,
            **task,
        },
        "training": {
            "batch_size": 16,
            "learning_rate": 1e-3,
            "epochs": 3,
            "device": "cpu",
            "precision": "fp32",
        },
    }


def test_a_reranker_from_its_training_to_its_answers(files: Path, tmp_path: Path) -> None:
    run, dev = tmp_path / "run", files / "dev.csv"
    path = write_config(tmp_path / "config.yaml", config(files, run, dev=str(dev)))
    done = run_cli("finetune", path, "--json")
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)
    evaluations = [row["ndcg_at_10"] for row in read_rows(run / "metrics.jsonl", "heldout")]
    assert len(evaluations) == 3
    assert scores["ndcg_at_10"] == max(evaluations)
    assert "best by ndcg_at_10: step" in done.stderr

    evaluated = json.loads(run_cli("evaluate", run, "--data", dev, "--json").stdout)
    assert {key: evaluated[key] for key in RANKING} == pytest.approx({key: scores[key] for key in RANKING})
    answered = [json.loads(line) for line in run_cli("predict", run, "--input", dev).stdout.splitlines()]
    questions, labels, values = zip(
        *((row["question"], float(row["relevant"]), row["value"]) for row in answered), strict=True
    )
    assert all(0 < value < 1 for value in values)
    assert reranking_scores(questions, labels, values) == pytest.approx({k: scores[k] for k in RANKING})


def test_rows_of_one_question_are_kept_together_for_evaluation(files: Path, tmp_path: Path) -> None:
    path = write_config(tmp_path / "config.yaml", config(files, tmp_path / "run", dev_fraction=0.25))
    done = run_cli("finetune", path, "--json", "--set", "training.epochs=0.2")
    assert done.returncode == 0, done.stderr
    assert "dev: 24 rows" in done.stderr
    assert json.loads(done.stdout)["map"] > 0


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"text": "passage", "dev_fraction": 0.25}, "'ndcg_at_10' is not a metric of this task; give one of"),
        ({"type": "classification"}, "sigmoid is for type: regression, not classification"),
        ({"text": "question", "label": "passage"}, "is not a number"),
    ],
)
def test_bad_input_is_refused(files: Path, tmp_path: Path, task: dict[str, Any], message: str) -> None:
    done = run_cli(
        "finetune", write_config(tmp_path / "config.yaml", config(files, tmp_path / "run", **task))
    )
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
