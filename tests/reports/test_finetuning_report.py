"""Reports of fine-tuning runs: their parts, seeds, folds, several runs, missing data."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from bertcli.reports.run_view import RunView, State
from bertcli.reports.scores import scores_of
from bertcli.system.errors import UserError
from bertcli.system.terminal import number
from tests.finetunes import checked, spam_config
from tests.reports.runs import ATTACK, ATTACKS, labeled, report, spam, table


def test_a_finished_run_has_every_part(finetuned: Path) -> None:
    found = report(finetuned)
    assert "Classification with bert on train.tsv, dev.tsv" in found.head
    assert "finished after 6 steps" in found.head
    assert "Without" not in found.head  # the start of a note about a part that is missing
    assert "accuracy" in found.text("scores")
    assert "0.844" in found.text("scores")  # the share of ham among the dev rows
    assert "baseline 0.844" in found.text("curves")
    assert "All 32 rows, answered for this report" in found.text("answers")
    assert "train 96" in found.text("data")
    assert "dev 32" in found.text("data")
    assert "1 rows of dev are in train as well" in found.text("data")


def test_the_matrix_holds_every_row_once(finetuned: Path) -> None:
    answers = report(finetuned).text("answers")
    assert "ham" in answers
    cells = answers.split("rows ham ", 1)[1].split(" Labels ", 1)[0]
    counts = [int(each) for each in cells.replace("·", "0").split() if each.isdecimal()]
    assert counts[2] == counts[0] + counts[1] == 27
    assert counts[5] == counts[3] + counts[4] == 5


def test_probabilities_are_beside_the_shares_that_are_right(finetuned: Path) -> None:
    answers = report(finetuned).text("answers")
    said = answers.split("Probabilities and shares of right answers", 1)[1]
    error, before = re.findall(
        r"\) is ([\d.]+); without the temperature, the thin line, it was ([\d.]+\d)", said
    )[0]
    row = json.loads((finetuned / "metrics.jsonl").read_text().splitlines()[-1])
    assert float(before) == pytest.approx(row["uncalibrated_error"], abs=0.01)
    assert 0 < float(error) < float(before)


def test_mistakes_are_those_of_the_dev_file_the_surest_first(finetuned: Path) -> None:
    found = report(finetuned)
    text = found.text("mistakes")
    assert "of 32 rows have a wrong answer, the surest first." in text
    scores = [float(each.rstrip("%")) for each in text.split() if each.endswith("%")]
    assert scores == sorted(scores, reverse=True)
    assert "dev.tsv, line" in text
    assert str(finetuned.parent) not in text


def test_the_words_that_decided_are_shown_if_asked_for(finetuned: Path) -> None:
    assert "integrated gradients" not in report(finetuned).text("mistakes")
    found = report(finetuned, attributions=True)
    assert "integrated gradients" in found.text("mistakes")
    assert any((each.get("class") or "") == "scored for" for each in found.named("span"))


def test_a_run_that_ended_without_its_verdict_has_it_from_its_answers(
    finetuned: Path, tmp_path: Path
) -> None:
    run = Path(shutil.copytree(finetuned, tmp_path / "run"))
    (run / "verdict.json").unlink()
    found, before = report(run), report(finetuned)
    said = json.loads((finetuned / "verdict.json").read_text())["lines"][0]
    assert said.partition(": ")[2][1:] in found.head
    assert found.text("scores") == before.text("scores")
    assert found.text("curves") == before.text("curves")
    shutil.rmtree(run / "model")
    shutil.rmtree(run / "checkpoints")
    assert "baseline" not in report(run).text("scores")


def test_the_scores_are_those_of_the_model_that_is_kept_also_of_two_that_are_equal(tmp_path: Path) -> None:
    place = {"split": "heldout", "accuracy": 0.75}
    rows = [place | {"step": 1, "loss": 1.5}, place | {"step": 2, "loss": 0.5}]
    config = checked(spam_config(tmp_path))
    view = RunView(tmp_path, "run", config, rows=rows, state=State("finished", 2), verdict=None)
    assert [score.value for score in scores_of(view) if score.key == "loss"] == ["0.500"]


def test_the_score_of_one_label_names_it(finetuned: Path) -> None:
    found = report(finetuned)
    assert "f1 of spam" in found.text("scores")
    assert "f1 of spam" in found.text("curves")


def test_a_student_has_its_teacher_and_a_curve_for_each_loss(finetuned: Path, tmp_path: Path) -> None:
    found = report(spam(tmp_path, distillation={"teacher": str(finetuned)}))
    assert "Classification with bert (taught by run) on train.tsv, dev.tsv" in found.head
    for loss in ("teacher loss", "labels loss", "loss"):
        assert f"numbers step {loss} " in found.text("curves")


def test_without_the_model_the_log_remains_and_the_report_says_so(finetuned: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finetuned, tmp_path / "run"))
    shutil.rmtree(run / "model")
    shutil.rmtree(run / "checkpoints")
    found = report(run)
    assert "finished after 6 steps" in found.head
    assert "Without the answers on the dev data: " in found.head
    assert not {"answers", "mistakes", "data"} & found.texts.keys()
    assert "accuracy" in found.text("scores")


def test_without_the_dev_file_too(finetuned: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(finetuned, tmp_path / "run"))
    config = (run / "config.yaml").read_text()
    (run / "config.yaml").write_text(config.replace("dev.tsv", "gone.tsv"))
    found = report(run)
    assert "gone.tsv: no such file" in found.head
    assert "answers" not in found.texts


def test_a_file_that_has_changed_is_named(tmp_path: Path) -> None:
    run = spam(tmp_path)
    dev = tmp_path / "dev.tsv"
    dev.write_text("".join(dev.read_text().splitlines(keepends=True)[:20]))
    found = report(run)
    assert "dev.tsv has changed since the run" in found.head
    assert "All 19 rows" in found.text("answers")


def test_a_dev_file_that_now_has_a_new_label_is_counted_and_its_label_named(tmp_path: Path) -> None:
    run = spam(tmp_path)
    with open(tmp_path / "dev.tsv", "a") as file:
        file.write("novel\tA new kind of message\n")
    found = report(run)
    assert "dev 33 – – – –" in found.text("data")
    assert "novel 0 0.0% 1 3.0%" in found.text("data")
    assert "the run would fail" in found.text("data")


def test_seeds_have_mean_and_range(tmp_path: Path) -> None:
    run = spam(tmp_path, seeds=[1, 2])
    found = report(run)
    assert "finished after 12 steps with 2 of 2 seeds" in found.head
    assert "seed-1: " in found.head
    seeds = found.text("several")
    assert seeds.startswith(
        "Scores of each seed score mean deviation range baseline seed-1 seed-2 what it means accuracy "
    )
    assert " 0.844 " in seeds.split("share of right answers")[0]  # the share of ham among the dev rows
    assert "share of right answers; the best model is chosen by it" in seeds
    assert "seed-2" in found.text("curves")
    assert found.text("mistakes")
    shutil.rmtree(run / "model")
    shutil.rmtree(run / "seed-2")
    unfinished = report(run)
    assert "stopped after 6 steps with 1 of 2 seeds" in unfinished.head
    assert unfinished.text("mistakes")
    assert "finished after 6 steps" in report(run / "seed-1").head


def test_folds_have_their_scores_answers_and_suspects(tmp_path: Path) -> None:
    run = spam(tmp_path, folds=2, task={"dev": None}, training={"epochs": 2, "learning_rate": 3e-3})
    found = report(run)
    assert "finished after" in found.head
    assert "with 3 of 3 runs" in found.head
    assert "final: " in found.head
    several = found.text("several")
    assert several.startswith(
        "Scores of each fold score all rows mean deviation range baseline fold-1 fold-2 what it means acc"
    )
    answers = found.text("answers")
    assert "All 96 rows, answered for this report by models of folds that did not learn" in answers
    assert "the best score on that fold, so the scores are a little too good." in answers
    (count,) = re.findall(r"of ([0-9,]+) rows for which", found.text("suspects"))
    assert int(count) > 0
    assert "--suspect-labels" in found.text("suspects")
    shutil.rmtree(run / "final")
    summary = json.loads((run / "folds.json").read_text())["out_of_fold"]
    said = answers.split("Probabilities and shares of right answers", 1)[1]
    assert f"it was {number(summary['uncalibrated_error'])}." in said
    (run / "folds.json").write_text("{}")
    with pytest.raises(UserError, match=r"folds.json: missing or damaged .*--resume"):
        report(run)


def test_several_runs_are_compared_without_their_mistakes(finetuned: Path, tmp_path: Path) -> None:
    found = report(finetuned, spam(tmp_path, training={"epochs": 2}))
    assert "2 runs of classification" in found.head
    assert "training.epochs 1 2" in found.text("recipe")
    assert "mistakes" not in found.texts
    assert "baseline 0.844" in found.head


def test_many_labels_and_long_hostile_texts_stay_small_and_harmless(tmp_path: Path) -> None:
    labels = [f"{ATTACK} {n} {'&' * 300}" for n in range(150)]
    rows = [["text", "label"], *([f"{ATTACKS} {n} {'<&>' * 200}", labels[n % 150]] for n in range(300))]
    task = {"type": "classification", "text": "text", "label": "label", "max_length": 16}
    run = labeled(tmp_path, task, "many.csv", table(rows))
    found = report(run, attributions=True)  # which also looks for scripts, handlers and size
    assert "Of 150 labels, the 11 in the most mistakes." in found.text("answers")
    assert "The 40 with the lowest F1 of 150." in found.text("answers")
    assert "these are the 50 of which the model is surest" in found.text("mistakes")
    assert "and 120 more" in found.text("data")
    assert ATTACK in found.text("mistakes")
    assert r"\u202e" in found.text("mistakes")


def test_a_run_without_dev_data_has_its_training_alone(tmp_path: Path) -> None:
    found = report(spam(tmp_path, task={"dev": None}))
    assert "None, because there was no dev data" in found.head
    assert not {"scores", "answers", "mistakes"} & found.texts.keys()
    assert "96" in found.text("data")
