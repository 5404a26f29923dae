"""Fine-tuning runs: frozen layers, an early end, batches cut up, what is refused before the first step."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from bertcli.batches.share import Share
from bertcli.folders.run_layout import read_verdict
from bertcli.model.task_models import build_task_model
from bertcli.system.errors import UserError
from bertcli.tasks.supervised import LabeledBatch, build_task
from bertcli.training.loop import LoopSettings, train
from bertcli.training.optimizer import build_optimizer
from bertcli.training.scores import StepReport
from tests.families.published import family_folder
from tests.finetunes import rows_but_times, run, spam_config, spam_files
from tests.folders.folders import LABELS, ODD, SETTINGS, head_of, tiny_tokenizer
from tests.labeled_examples import draw_examples
from tests.small_runs import read_rows

ONE_STEP = {"epochs": 0.1}
NO_DROPOUT = replace(ODD, dropout=0.0, attention_dropout=0.0)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return spam_files(tmp_path_factory.mktemp("files"))


@pytest.fixture
def config(files: Path, tmp_path: Path) -> dict[str, Any]:
    """Of a single step; its output_dir is `tmp_path / "run"`."""
    return spam_config(files, output_dir=str(tmp_path / "run"), training=ONE_STEP)


def test_a_run_leaves_what_the_next_one_needs(config: dict[str, Any], tmp_path: Path) -> None:
    done = run(config | {"training": config["training"] | {"epochs": 2}})
    folder = tmp_path / "run"
    assert done.model == folder / "model"
    assert {path.name for path in folder.iterdir()} == {
        *(".lock", ".bertcli.json", "config.yaml", "data.json", "metrics.jsonl", "checkpoints", "model"),
        "verdict.json",
    }
    saved = yaml.safe_load((folder / "config.yaml").read_text())
    assert "auto" not in saved["training"].values()
    assert saved["model"] == config["model"]
    rows = rows_but_times(folder / "metrics.jsonl")
    assert [(row["step"], row["epoch"]) for row in rows if row["split"] == "heldout"] == [(6, 1.0), (12, 2.0)]
    assert [row["step"] for row in rows if row["split"] == "train"] == list(range(1, 13))
    assert rows[0].keys() == {
        *("step", "epoch", "split", "loss", "learning_rate", "grad_norm", "tokens", "skipped_steps")
    }
    assert {"step", "epoch", "split", "loss", "accuracy", "f1", "macro_f1", "tokens"} <= rows[6].keys()
    kept = read_verdict(folder / "verdict.json")
    assert kept is not None
    assert done.verdict is not None
    assert (kept.step, kept.lines[0]) == (12, done.verdict.line)
    assert kept.baseline == done.verdict.baseline
    card = (done.model / "README.md").read_text()
    for fact in (
        "pipeline_tag: text-classification",
        "96 rows of train.tsv",
        "32 rows of dev.tsv",
        "ham, spam",
    ):
        assert fact in card
    assert done.scores is not None
    assert f"| accuracy | {done.scores.metrics['accuracy']:.4f} |" in card


def test_the_card_says_where_dev_data_came_from_and_keeps_its_table(
    config: dict[str, Any], files: Path, tmp_path: Path
) -> None:
    text = (files / "train.tsv").read_text().replace("spam\t", "s|m\t")
    (tmp_path / "train.tsv").write_text(text)
    config["task"] |= {"train": str(tmp_path / "train.tsv"), "dev": None, "dev_fraction": 0.25}
    card = (run(config).model / "README.md").read_text()
    assert (
        "| trained on | 72 rows of train.tsv |\n| evaluated on | 24 rows of train.tsv, split off |\n" in card
    )
    assert r"| labels | ham, s\|m |" in card
    assert yaml.safe_load(card.split("---\n")[1])["pipeline_tag"] == "text-classification"
    for name in ("README.md", "config.json"):
        assert str(tmp_path) not in (tmp_path / "run" / "model" / name).read_text()


def test_without_dev_data_the_last_model_is_kept(
    config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config["task"]["dev"] = None
    done = run(config)
    assert done.scores is None
    assert "no dev data (task.dev or task.dev_fraction)" in capsys.readouterr().err
    last = tmp_path / "run" / "checkpoints" / "step-00000001" / "model" / "model.safetensors"
    assert (done.model / "model.safetensors").read_bytes() == last.read_bytes()
    assert "None were measured" in (done.model / "README.md").read_text()


def test_the_rate_is_decided_from_the_weights_and_kept(config: dict[str, Any], tmp_path: Path) -> None:
    config["training"]["learning_rate"] = "auto"
    run(config)
    saved = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["training"]
    assert saved["learning_rate"] == pytest.approx(1.4e-3, rel=0.1)  # 32 wide, weights of 0.0176
    assert saved["optimizer"] == "adamw"


def test_layers_that_share_their_weights_are_not_frozen_one_by_one(
    config: dict[str, Any], tmp_path: Path
) -> None:
    config["model"] = str(family_folder("albert", tmp_path / "albert"))
    for keys in ({"freeze_layers": 1}, {"layer_decay": 0.5}):
        with pytest.raises(UserError, match="the layers of this model share theirs; leave both out"):
            run(config | {"training": config["training"] | keys})


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_frozen_layers_keep_their_weights_to_the_bit(
    config: dict[str, Any], files: Path, layers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    config["training"] |= {"freeze_layers": layers, "weight_decay": 0.1}
    model = run(config).model
    before, after = (load_file(folder / "model.safetensors") for folder in (files / "bert", model))
    frozen = ("bert.embeddings.", *(f"bert.encoder.layer.{i}." for i in range(layers)))
    for name in after.keys() & before.keys():
        kept = bool(layers) and name.startswith(frozen)
        if not name.endswith("key.bias"):  # its gradient is nothing but rounding
            assert torch.equal(before[name], after[name]) == kept, name
    words = "bert.embeddings.word_embeddings.weight"
    absent = (before[words] == after[words]).all(dim=1)  # all that occur are decayed, if nothing else
    trained = sum(value.numel() for name, value in after.items() if not (layers and name.startswith(frozen)))
    if not layers:
        trained -= int(absent.sum()) * after[words].shape[1]
    assert f" {trained:,} of them trained" in capsys.readouterr().err


def test_layer_decay_reaches_the_steps(config: dict[str, Any], files: Path) -> None:
    """With AdamW, the first step of a weight is its learning rate, whatever the gradient's size."""
    config["training"] |= {"layer_decay": 0.5, "weight_decay": 0.0}
    model = run(config).model
    before, after = (load_file(folder / "model.safetensors") for folder in (files / "bert", model))

    def step(name: str) -> float:
        return float((after[name] - before[name]).abs().max())

    assert step("bert.pooler.dense.weight") == pytest.approx(1e-3, rel=0.01)
    assert step("bert.encoder.layer.1.output.dense.weight") == pytest.approx(5e-4, rel=0.01)
    assert step("bert.encoder.layer.0.output.dense.weight") == pytest.approx(2.5e-4, rel=0.01)
    assert step("bert.embeddings.word_embeddings.weight") == pytest.approx(1.25e-4, rel=0.01)


def test_an_early_end_is_said(
    config: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config["training"] |= {"epochs": 3, "early_stopping": 1, "learning_rate": 1e-5}
    config["evaluation"] = {"every_steps": 2}
    run(config)  # the accuracy stays as it is at so low a rate
    said = capsys.readouterr().err
    assert "stopping early at step 4: no better accuracy in 1 evaluations (training.early_stopping)" in said
    assert "best by accuracy: step 4" in said  # the lower loss of two that are equal
    assert read_rows(tmp_path / "run" / "metrics.jsonl")[-1]["step"] == 4


def test_the_end_is_no_early_one(config: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    config["training"] |= {"epochs": 0.7, "early_stopping": 1, "learning_rate": 1e-5}
    config["evaluation"] = {"every_steps": 2}
    run(config)
    assert "stopping early" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("section", "values", "message"),
    [
        (
            "task",
            {"metric": "acuracy"},
            "task.metric: 'acuracy' is not a metric of this task; give one of loss, accuracy, f1, macro_f1, ",
        ),
        ("training", {"freeze_layers": 3}, "training.freeze_layers: 3, but the model has only 2 layers"),
        ("task", {"class_weights": {"ham": 1.0}}, "a weight for each label, missing: spam"),
    ],
)
def test_a_config_that_cannot_run_leaves_the_folder_free(
    config: dict[str, Any], tmp_path: Path, section: str, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        run(config | {section: config[section] | values})
    assert [path.name for path in (tmp_path / "run").iterdir()] == [".lock"]
    run(config)


def test_the_best_threshold_of_dev_is_kept(
    files: Path, tmp_path: Path, run_bertcli: Callable[..., tuple[int, str, str]]
) -> None:
    """The scores of questions without an answer are there only where the dev data have such questions, which
    the first ones lack."""
    answer = {"text": "cat", "answer_start": 4}
    questions = [{"id": str(i), "question": "who?", "answers": [answer] * (i < 9)} for i in range(10)]
    for name, some in (("train.json", questions[:9]), ("dev.json", questions)):
        squad = {"data": [{"paragraphs": [{"context": "the cat sat", "qas": some}]}]}
        (tmp_path / name).write_text(json.dumps(squad))
    config = spam_config(files, output_dir=str(tmp_path / "run"), training=ONE_STEP)
    config["task"] = {
        "type": "question-answering",
        "train": str(tmp_path / "train.json"),
        "dev": str(tmp_path / "dev.json"),
        "max_length": 32,
        "metric": "best_f1",
    }
    done = run(config)
    assert done.scores is not None
    scores, folder = done.scores.metrics, tmp_path / "run/model"
    kept = json.loads((folder / "config.json").read_text())["bertcli_task"]["null_threshold"]
    assert kept == scores["null_threshold"]
    rows = rows_but_times(tmp_path / "run/metrics.jsonl", "heldout")
    assert all(row["f1"] == row["best_f1"] for row in rows)
    _, printed, _ = run_bertcli("evaluate", str(folder), "--data", config["task"]["dev"], "--json")
    assert json.loads(printed)["f1"] == scores["best_f1"]
    config["task"] |= {"dev": None, "train": config["task"]["dev"], "metric": None}
    run(config, overwrite=True)  # nothing is measured: as likely is enough
    kept = json.loads((folder / "config.json").read_text())["bertcli_task"]["null_threshold"]
    assert kept == 0


def test_probabilities_of_the_finished_model_have_the_temperature_and_thresholds_of_dev(
    config: dict[str, Any], tmp_path: Path, run_bertcli: Callable[..., tuple[int, str, str]]
) -> None:
    done = run(config | {"task": config["task"] | {"threshold": "precision=0.8"}})
    assert done.scores is not None
    found, folder = done.scores.metrics, tmp_path / "run/model"
    kept = json.loads((folder / "config.json").read_text())["bertcli_task"]
    assert kept["temperature"] == found["temperature"]
    assert kept["threshold"] == {"spam": found["threshold"]}
    best, final = (
        load_file(each / "model.safetensors") for each in (tmp_path / "run/checkpoints/best", folder)
    )
    for name, weight in final.items():
        divided = best[name] / found["temperature"] if name.startswith("classifier.") else best[name]
        torch.testing.assert_close(weight, divided)
    _, printed, _ = run_bertcli("evaluate", str(folder), "--data", config["task"]["dev"], "--json")
    evaluated = json.loads(printed)
    assert evaluated["f1"] == found["f1"]
    assert evaluated["uncalibrated_error"] == pytest.approx(found["uncalibrated_error"], abs=0.02)
    assert {"temperature", "threshold"}.isdisjoint(evaluated)


def steps_in_micro_batches(kind: str, micro_batch_size: int) -> list[StepReport]:
    """Five steps of 32 items of unequal length."""
    labels = LABELS.get(kind, ())
    weights = {label: 0.5 + number for number, label in enumerate(labels)}
    task = build_task(SETTINGS[kind], labels)
    if kind == "classification":
        task.prepare([], print, weights)
    torch.manual_seed(0)
    model = build_task_model(head_of(kind), NO_DROPOUT, len(labels) or 1)
    items = [task.encode(draw_examples(kind, 32, seed), tiny_tokenizer()) for seed in range(5)]
    steps = [LabeledBatch(tuple(each), pad_id=0).micro_batches(Share(micro_batch_size)) for each in items]
    settings = LoopSettings(
        seed=1,
        device=torch.device("cpu"),
        precision="fp32",
        max_grad_norm=1.0,
        rate=lambda step: 1e-3,
    )
    optimizer = build_optimizer(model, (0.9, 0.999), 0.01)
    return list(train(model, task, steps, optimizer, settings, 0))


@pytest.mark.parametrize("kind", ["classification", "tokens", "choices"])
def test_cutting_a_batch_changes_nothing_but_rounding(kind: str) -> None:
    whole = steps_in_micro_batches(kind, 32)
    for micro_batch_size in (8, 4):
        for a, b in zip(whole, steps_in_micro_batches(kind, micro_batch_size), strict=True):
            assert a.loss == pytest.approx(b.loss, rel=1e-5)
            assert a.grad_norm == pytest.approx(b.grad_norm, rel=1e-5)
            assert a.tokens == b.tokens


def test_a_tag_of_one_sentence_is_learned(files: Path, tmp_path: Path) -> None:
    """Also where all others are copies of one sentence."""
    train = tmp_path / "train.conll"
    train.write_text("Mia B-PER\nruns O\n\n" * 20 + "Rome B-LOC\nis O\n\n", encoding="utf-8")
    task = {"type": "token-classification", "train": str(train), "dev_fraction": 0.2, "max_length": 32}
    config = spam_config(files, output_dir=str(tmp_path / "run"), training=ONE_STEP)
    model = run(config | {"task": task}).model
    labels = json.loads((model / "config.json").read_text())["label2id"]
    assert set(labels) == {"O", "B-LOC", "I-LOC", "B-PER", "I-PER"}
