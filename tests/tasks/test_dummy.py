"""A new task is one file and one line of the registry; no other file of the package knows of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bertcli.advice.init.task import find_task
from bertcli.folders.model_folder import save_model_folder
from bertcli.tasks.registry import TASKS
from tests.advice.init.files import seen
from tests.folders.folders import random_model, tiny_tokenizer
from tests.small_runs import write_config
from tests.tasks.dummy import COLUMNS, ORDERS

Bertcli = Callable[..., tuple[int, str, str]]
SENTENCES = ("the cat sat on the mat", "it was night in the house", "a dog ran")


def write_stories(path: Path, rows: int = 36) -> Path:
    """Every order equally often; the sentences differ in their first words."""
    lines = ["\t".join([*COLUMNS, "label"])]
    for number in range(rows):
        order = ORDERS[number % len(ORDERS)]
        told = sorted(zip(order.split(), SENTENCES, strict=True))
        lines.append("\t".join([*(f"{text} {'. ' * (number // 6)}" for _, text in told), order]))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(autouse=True)
def ordering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS, "ordering", "tests.tasks.dummy:Ordering")


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    save_model_folder(tmp_path / "start", random_model(max_positions=64), tiny_tokenizer())
    return {
        "output_dir": str(tmp_path / "run"),
        "model": str(tmp_path / "start"),
        "task": {
            "type": "ordering",
            "train": str(write_stories(tmp_path / "stories.tsv")),
            "text": list(COLUMNS),
            "label": "label",
            "dev_fraction": 0.5,
            "max_length": 48,
        },
        "training": {"epochs": 1, "batch_size": 8, "device": "cpu"},
        "logging": {"report": True},
    }


def test_a_new_task_goes_through_every_command(
    run_bertcli: Bertcli, config: dict[str, Any], tmp_path: Path
) -> None:
    def run(*arguments: object) -> str:
        code, out, err = run_bertcli(*arguments)
        assert code == 0, err
        return out

    path, folder, page = (
        write_config(tmp_path / "config.yaml", config),
        tmp_path / "run",
        tmp_path / "mine.html",
    )
    assert run("check-data", path).startswith("train: 18 rows; ")
    assert run("finetune", path) == f"{folder / 'model'}\n"
    told = json.loads(run("predict", folder, "--json", *SENTENCES))
    assert (told["first"], told["order"] in ORDERS) == (SENTENCES[0], True)
    scores = json.loads(run("evaluate", folder, "--data", tmp_path / "stories.tsv", "--json"))
    assert 0 <= scores["accuracy"] <= 1
    run("report", folder, "--attributions", "--output", page)
    assert "2 0 1" in page.read_text()
    run("attention", folder, *SENTENCES, "--attributions", "--output", page)
    assert "night" in page.read_text()
    run("export", folder, tmp_path / "onnx")
    again = json.loads(run("predict", tmp_path / "onnx", "--json", *SENTENCES))
    assert (again["order"], round(again["probability"], 3)) == (told["order"], round(told["probability"], 3))


def test_init_recognizes_its_files(tmp_path: Path) -> None:
    found = find_task(seen(write_stories(tmp_path / "stories.tsv")))
    assert found.keys == {"type": "ordering", "text": list(COLUMNS), "label": "label"}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"text": ["first", "second"]}, "text: three columns, a sentence in each (ordering)"),
        ({"multi_label": True}, "multi_label is for type: classification, not ordering"),
        ({"format": "conll"}, "format: conll is for type: token-classification, not ordering"),
        ({"type": "order"}, "or 'ordering', got 'order'"),
    ],
)
def test_its_settings_are_checked(
    run_bertcli: Bertcli, config: dict[str, Any], tmp_path: Path, keys: dict[str, Any], message: str
) -> None:
    config["task"] |= keys
    code, _, err = run_bertcli("finetune", write_config(tmp_path / "config.yaml", config))
    assert code == 2
    assert message in err
