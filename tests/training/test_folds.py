"""Folds: a model that did not learn from a row answers it; the final model learns from all rows."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest

from bertcli.advice.bench.plan import plan_finetuning
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_config
from bertcli.system.errors import UserError
from bertcli.training.finetuning import Finetuned
from bertcli.training.metrics_log import MetricsLog
from bertcli.training.train import finetune_parts
from bertcli.training.verify_resume import _short_finetuning
from tests.finetunes import Killed, checked, rows_but_times, run, spam_config, spam_files
from tests.small_runs import read_rows

PARTS = ("fold-1", "fold-2", "fold-3", "final")


def config(files: Path, root: Path, **sections: Any) -> dict[str, Any]:
    task = {"dev": None, "metric": "loss"} | sections.pop("task", {})
    training = {"epochs": 2, "learning_rate": 3e-3} | sections.pop("training", {})
    return spam_config(
        files,
        output_dir=str(root),
        folds=3,
        task=task,
        training=training,
        checkpoint={"every_steps": 2},
        **sections,
    )


def start(config: dict[str, Any], resume: bool = False, overwrite: bool = False) -> Finetuned:
    return finetune_parts(checked(config), resume, overwrite)


def cases(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / "out-of-fold.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return spam_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def done(files: Path) -> tuple[Path, Finetuned]:
    return files / "run", start(config(files, files / "run"))


def test_every_row_has_an_answer_in_the_order_of_the_file(done: tuple[Path, Finetuned], files: Path) -> None:
    found = cases(done[0])
    lines = (files / "train.tsv").read_text(encoding="utf-8").splitlines()[1:]
    assert [case["right"] for case in found] == [line.split("\t")[0] for line in lines]
    assert [int(case["where"].rpartition(" ")[2]) for case in found] == list(range(2, len(lines) + 2))
    assert {case["fold"] for case in found} == {1, 2, 3}
    assert all(sum(case["prediction"]["probabilities"].values()) == pytest.approx(1) for case in found)


def test_the_answers_of_a_fold_are_those_of_its_model(done: tuple[Path, Finetuned], files: Path) -> None:
    """Each fold's row is answered as its model answers it, at the temperature of all answers, and its model
    did not learn from it."""
    import torch

    from bertcli.folders.task_folder import load_task_folder
    from bertcli.inference.predict import runner_of
    from bertcli.tasks.files import read_examples

    found = [case for case in cases(done[0]) if case["fold"] == 2]
    loaded = load_task_folder(done[0] / "fold-2" / "model")
    runner = runner_of(loaded, torch.device("cpu"))
    examples = list(read_examples(files / "train.tsv", loaded.settings, True))
    own = [each for each in examples if each.where in {case["where"] for case in found}]
    answers = runner.predict(own, runner.task.encode(own, loaded.tokenizer))
    joint = load_task_folder(done[0] / "model").settings.temperature
    own_temperature = loaded.settings.temperature
    assert isinstance(joint, float)
    assert isinstance(own_temperature, float)
    for case, answer in zip(found, answers, strict=True):
        given, own_odds = (
            math.log(each["ham"] / each["spam"])
            for each in (case["prediction"]["probabilities"], answer.as_json()["probabilities"])
        )
        assert given * joint == pytest.approx(own_odds * own_temperature, abs=1e-5)
    card = (done[0] / "fold-2" / "model" / "README.md").read_text()
    assert f"{96 - len(found)} rows of train.tsv" in card
    assert f"{len(found)} rows of train.tsv, split off" in card


def test_the_summary_has_each_fold_their_spread_and_the_score_of_all_rows(
    done: tuple[Path, Finetuned],
) -> None:
    root, finished = done
    summary = json.loads((root / "folds.json").read_text())
    assert summary["runs"].keys() == {"1", "2", "3"}
    values = [each["accuracy"] for each in summary["runs"].values()]
    assert summary["metrics"]["accuracy"]["mean"] == pytest.approx(statistics.fmean(values))
    assert summary["metrics"]["accuracy"]["std"] == pytest.approx(statistics.stdev(values))
    right = [case["prediction"]["label"] == case["right"] for case in cases(root)]
    assert summary["out_of_fold"]["accuracy"] == pytest.approx(statistics.fmean(right))
    assert finished.scores is not None
    assert finished.scores.metrics["accuracy"] == summary["out_of_fold"]["accuracy"]
    assert finished.verdict is not None


def test_the_final_model_learns_from_all_rows_for_the_median_of_the_best_epochs(
    done: tuple[Path, Finetuned],
) -> None:
    root, finished = done
    best = []
    for fold in (1, 2, 3):
        rows = read_rows(root / f"fold-{fold}" / "metrics.jsonl", "heldout")
        best.append(min(rows, key=lambda row: row["loss"])["epoch"])
    own = load_config(FinetuneConfig, root / "final" / "config.yaml")
    assert (
        own.training.epochs
        == statistics.median(best)
        == json.loads((root / "folds.json").read_text())["epochs"]
    )
    assert (own.folds, own.fold, own.task.dev_fraction) == (None, None, None)
    assert not read_rows(root / "final" / "metrics.jsonl", "heldout")
    assert finished.model == root / "model"
    card = (root / "model" / "README.md").read_text()
    assert "| trained on | 96 rows of train.tsv |" in card
    assert "by 3 models, each of which answered the fold that it did not learn from" in card
    assert "the best score on that fold, so the scores are a little too good.\n" in card
    assert (root / "model" / "model.safetensors").read_bytes() == (
        root / "final" / "model" / "model.safetensors"
    ).read_bytes()


@pytest.mark.parametrize(("part", "step"), [("fold-1", 3), ("fold-3", 6), ("final", 3)])
def test_killed_in_any_part_it_ends_as_undisturbed(
    done: tuple[Path, Finetuned], files: Path, tmp_path: Path, part: str, step: int
) -> None:
    write = MetricsLog.write
    own = config(files, tmp_path / "run")

    def write_and_die(self: MetricsLog, row: dict[str, Any]) -> None:
        write(self, row)
        if row["step"] == step and self._path.parent.name == part:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MetricsLog, "write", write_and_die)
        with pytest.raises(Killed):
            start(own)
    start(own, resume=True)
    for name in ("folds.json", "model/model.safetensors"):
        assert (tmp_path / "run" / name).read_bytes() == (done[0] / name).read_bytes()
    assert cases(tmp_path / "run") == cases(done[0])
    for each in PARTS:
        rows = [rows_but_times(root / each / "metrics.jsonl") for root in (tmp_path / "run", done[0])]
        assert rows[0] == rows[1]


def test_a_fold_alone_is_the_one_of_the_whole(
    done: tuple[Path, Finetuned], files: Path, tmp_path: Path
) -> None:
    alone = run(config(files, tmp_path / "run") | {"fold": 2})
    assert alone.scores is not None
    assert rows_but_times(tmp_path / "run" / "metrics.jsonl") == rows_but_times(
        done[0] / "fold-2" / "metrics.jsonl"
    )


def test_the_folder_is_that_of_these_folds(done: tuple[Path, Finetuned], files: Path) -> None:
    own = config(files, done[0])
    with pytest.raises(UserError, match="already has a run"):
        start(own)
    with pytest.raises(UserError, match="folds: 3 in the run, 4 now"):
        start(own | {"folds": 4}, resume=True)


def test_an_overwritten_folder_keeps_nothing_of_the_folds_before(files: Path, tmp_path: Path) -> None:
    own = config(files, tmp_path / "run", training={"epochs": 1})
    start(own)
    start(own | {"folds": 2}, overwrite=True)
    assert sorted(path.name for path in tmp_path.glob("run/fold-*")) == ["fold-1", "fold-2"]
    assert {case["fold"] for case in cases(tmp_path / "run")} == {1, 2}
    run(own | {"folds": None}, overwrite=True)
    assert not [*tmp_path.glob("run/fold*"), *tmp_path.glob("run/out-of-fold*"), *tmp_path.glob("run/final*")]


def test_more_epochs_go_on_in_the_folds_and_start_the_final_model_again(files: Path, tmp_path: Path) -> None:
    own = config(files, tmp_path / "run", training={"epochs": 1})
    start(own)
    own["training"]["epochs"] = 2
    start(own, resume=True)
    epochs = json.loads((tmp_path / "run" / "folds.json").read_text())["epochs"]
    rows = read_rows(tmp_path / "run" / "final" / "metrics.jsonl")
    assert rows[-1]["epoch"] == epochs
    assert [row["step"] for row in rows] == sorted({row["step"] for row in rows})


def test_rows_of_a_group_are_in_one_fold(files: Path, tmp_path: Path) -> None:
    header, *lines = (files / "train.tsv").read_text(encoding="utf-8").splitlines()
    table = "\n".join([f"{header}\tsender", *(f"{line}\t{i % 10}" for i, line in enumerate(lines))])
    (tmp_path / "grouped.tsv").write_text(table + "\n", encoding="utf-8")
    task = {"train": str(tmp_path / "grouped.tsv"), "group": "sender"}
    start(config(files, tmp_path / "run", task=task, training={"epochs": 1}))
    folds: dict[str, set[int]] = {}
    for case in cases(tmp_path / "run"):
        folds.setdefault(case["columns"]["sender"], set()).add(case["fold"])
    assert len(folds) == 10
    assert all(len(each) == 1 for each in folds.values())


def test_what_is_verified_or_estimated_is_one_fold_or_all_of_them(files: Path, tmp_path: Path) -> None:
    own = checked(config(files, tmp_path / "run"))
    short, steps = _short_finetuning(own, steps=50)
    assert (short.fold, steps) == (1, 8)  # of 64 rows in 2 epochs
    alone = checked(config(files, tmp_path / "run") | {"fold": 1})
    plan, one = plan_finetuning(own, lambda line: None), plan_finetuning(alone, lambda line: None)
    assert plan.steps == 3 * 2 * 6  # as three runs of all 96 rows
    assert plan.heldout_tokens == pytest.approx(3 * one.heldout_tokens, rel=0.2)
    assert (plan.models, plan.kept, one.models, one.kept) == (8, 4, 2, 1)
