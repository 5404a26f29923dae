"""The second job through the real command line: a pretrained model and labeled text in, answers out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from bertcli.config.section import Decoding
from bertcli.corpus.streams import read_lines
from bertcli.folders.task_folder import load_task_folder
from bertcli.tasks.files import find_labeled_file
from tests.finetunes import write_spam
from tests.small_runs import read_rows, run_cli, run_warm, small_config, write_config

SPAM, HAM = "URGENT! You have won a 1000 prize. Call 09061701461 now", "ok see you at home then"


@pytest.fixture(scope="module")
def pretrained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pretrained")
    config = small_config(
        corpus,
        folder / "run",
        training={"steps": 40, "batch_size": 32, "micro_batch_size": "auto", "learning_rate": 5e-3},
        evaluation={"every_steps": 40},
        checkpoint={"every_steps": 40},
    )
    result = run_cli("pretrain", write_config(folder / "config.yaml", config))
    assert result.returncode == 0, result.stderr
    return folder / "run"


def finetune(model: Path, folder: Path, task: dict[str, Any], **training: Any) -> tuple[Path, str]:
    """The run's folder, and what it said."""
    config = {
        "output_dir": str(folder / "run"),
        "model": str(model),
        "task": {"max_length": 32, **task},
        "training": {"batch_size": 16, "learning_rate": 2.0e-3, "device": "cpu", **training},
    }
    result = run_cli("finetune", write_config(folder / "config.yaml", config))
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{folder / 'run' / 'model'}\n"
    return folder / "run", result.stderr


@pytest.fixture(scope="module")
def spam(pretrained: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("spam")
    write_spam(folder / "spam.tsv", rows=600)
    task = {
        "type": "classification",
        "train": str(folder / "spam.tsv"),
        "text": "message",
        "label": "label",
        "dev_fraction": 0.2,
        "class_weights": "balanced",
        "metric": "macro_f1",
    }
    return finetune(pretrained, folder, task, epochs=5)


def test_what_the_data_hold_is_said_at_the_start(spam: tuple[Path, str]) -> None:
    said = spam[1].splitlines()
    assert said[0].startswith("train: 480 rows; ham 4")
    assert said[1].startswith("dev: 120 rows; ham 1")
    assert "spam" in said[0]
    assert said[2].startswith("lengths: median ")
    assert "are cut at 32 (task.max_length)" in said[2]
    assert "rows of train repeat the text of another one" in spam[1]
    assert "  new: classifier.bias, classifier.weight" in said


def test_spam_is_learned(spam: tuple[Path, str]) -> None:
    run, said = spam
    scores = [row["macro_f1"] for row in read_rows(run / "metrics.jsonl", "heldout")]
    assert max(scores) > 0.6  # 0.46 for one label always
    assert f"best by macro_f1: step {30 * (1 + scores.index(max(scores)))}\n" in said


def test_predict_answers(spam: tuple[Path, str]) -> None:
    result = run_warm("predict", spam[0], "--json", SPAM, HAM)
    assert result.returncode == 0, result.stderr
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [answer["label"] for answer in answers] == ["spam", "ham"]
    assert sum(answers[0]["probabilities"].values()) == pytest.approx(1.0)


def test_transformers_loads_the_model_and_gives_its_logits(spam: tuple[Path, str]) -> None:
    folder = spam[0] / "model"
    theirs: Any = transformers.AutoModelForSequenceClassification.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(
        [SPAM, SPAM], ["", HAM], return_tensors="pt", padding=True, truncation=True, max_length=32
    )
    ours = load_task_folder(folder).model.eval()
    with torch.no_grad():
        want = theirs(**inputs).logits
        mask_BT = inputs["attention_mask"].bool()
        got = ours(inputs["input_ids"], inputs["token_type_ids"], mask_BT)
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    assert theirs.config.id2label == {0: "ham", 1: "spam"}


def test_entities_of_posts(pretrained: Path, tmp_path: Path) -> None:
    for name, rows in (("wnut17", 1500), ("wnut17-dev", 500)):
        lines = [
            line
            for line, _ in zip(read_lines(find_labeled_file(name), Decoding()), range(rows), strict=False)
        ]
        (tmp_path / f"{name}.conll").write_text("\n".join(lines) + "\n", encoding="utf-8")
    task = {
        "type": "token-classification",
        "train": str(tmp_path / "wnut17.conll"),
        "dev": str(tmp_path / "wnut17-dev.conll"),
        "doc_stride": 8,
    }
    run, said = finetune(pretrained, tmp_path, task, epochs=3)
    assert " windows; person " in said
    heldout = read_rows(run / "metrics.jsonl", "heldout")
    assert {"precision", "recall", "f1", "accuracy"} <= heldout[0].keys()
    train = read_rows(run / "metrics.jsonl", "train")
    assert train[-1]["loss"] < train[0]["loss"] / 2
    model: Any = transformers.AutoModelForTokenClassification.from_pretrained(run / "model")
    assert model.config.id2label[0] == "O"
