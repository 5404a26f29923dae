"""Reports of pretraining runs: finished, killed, running, without store or model, of any objective."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bertcli.files import lock_file
from tests.report.runs import ATTACK, pretraining, report
from tests.small_runs import read_rows


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretraining(tmp_path_factory.mktemp("bert"))


def copy(run: Path, to: Path) -> Path:
    return Path(shutil.copytree(run, to / "run"))


def test_a_finished_run_has_every_part(finished: Path) -> None:
    found = report(finished)
    assert "A BERT of 2 layers × 32: mlm+nsp on corpus.txt" in found.head
    assert "finished after 12 steps" in found.head
    said = json.loads((finished / "verdict.json").read_text())["lines"][0].removeprefix("verdict: ")
    assert f"verdict {said[0].upper()}{said[1:]}" in found.head
    last = read_rows(finished / "metrics.jsonl", "heldout")[-1]
    scores = found.text("scores")
    assert f"mlm loss {last['mlm_loss']:.2f}" in scores
    assert f"nsp accuracy {last['nsp_accuracy']:.3f} 0.500" in scores
    assert "perplexity" in scores
    assert "word frequencies alone" in found.text("curves")
    assert "chance 0.693" in found.text("curves")
    assert "400 entries, wordpiece, lower-cased" in found.text("corpus")
    assert "training.learning_rate 0.001" in found.text("recipe")


def test_each_example_shows_five_words_and_where_the_right_one_is(finished: Path) -> None:
    found = report(finished)
    assert found.text("examples").startswith("Masked words Sentences of held-out text")
    guesses = [each for each in found.named("li") if each.get("class") in ("right", "rank")]
    assert len(guesses) == len([each for each in found.named("mark") if each.get("class") == "blank"]) > 3


def test_every_chart_can_be_read_by_three_axes(finished: Path) -> None:
    found = report(finished)
    charts = [each for each in found.named("figure") if "chart" in (each["class"] or "")]
    shown = [each["class"] for each in found.named("div") if "by-" in (each.get("class") or "")]
    assert len(charts) == 7  # two terms with loss and accuracy, learning rate, norm, speed
    for axis in ("step", "tokens", "seconds"):
        assert shown.count(f"by by-{axis}") == len(charts)
    assert [each["id"] for each in found.named("input")] == ["axis-step", "axis-tokens", "axis-seconds"]


def test_findings_of_the_corpus_are_there_if_asked_for(finished: Path) -> None:
    assert "The text was not read again" in report(finished).text("corpus")
    assert "What to mend" in report(finished, check_data=True).text("corpus")


def test_a_killed_run_says_where_it_stopped(finished: Path, tmp_path: Path) -> None:
    run = copy(finished, tmp_path)
    rows = (run / "metrics.jsonl").read_text().splitlines(keepends=True)[:9]
    (run / "metrics.jsonl").write_text("".join(rows) + '{"step": 9')
    shutil.rmtree(run / "model")
    found = report(run)
    assert "stopped after 8 of 12 steps" in found.head
    assert "verdict" not in found.head
    assert found.text("examples")


def test_a_run_that_another_process_continues_is_running(finished: Path, tmp_path: Path) -> None:
    run = copy(finished, tmp_path)
    with lock_file(run / ".lock", "in use", "wait"):
        assert "running after 12 of 12 steps" in report(run).head
    assert "finished" in report(run).head


def test_a_run_without_its_store_or_model_has_what_its_log_knows(finished: Path, tmp_path: Path) -> None:
    run = copy(finished, tmp_path)
    for name in ("model", "checkpoints"):
        shutil.rmtree(run / name)
    config = (run / "config.yaml").read_text()
    store = next(line for line in config.splitlines() if line.strip().startswith("store:"))
    (run / "config.yaml").write_text(config.replace(store, f"  store: {tmp_path / 'gone'}"))
    found = report(run)
    assert "without the corpus and the examples: " in found.head
    assert "without the examples: " in found.head
    assert not {"corpus", "examples"} & found.texts.keys()
    assert "mlm loss" in found.text("scores")
    assert found.text("curves")


def test_a_skipped_step_leaves_a_gap_and_is_counted(finished: Path, tmp_path: Path) -> None:
    run = copy(finished, tmp_path)
    rows = read_rows(run / "metrics.jsonl")
    rows[3] |= {"loss": None, "mlm_loss": None, "nsp_loss": None, "grad_norm": None}
    for row in rows[3:]:
        row["skipped_steps"] = 1 if row["split"] == "train" else 0
    (run / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert "skipped steps 1, whose loss or gradient was not finite" in report(run).head


def test_terms_of_any_name_have_curves_and_scores(finished: Path, tmp_path: Path) -> None:
    run = copy(finished, tmp_path)
    lines = (run / "metrics.jsonl").read_text().replace("nsp_", "new_term_")
    (run / "metrics.jsonl").write_text(lines)
    found = report(run)
    assert "new term loss" in found.text("scores")
    assert "new term accuracy" in found.text("curves")


def test_replaced_words_are_shown_with_their_probability(tmp_path: Path) -> None:
    run = pretraining(
        tmp_path,
        model={"family": "electra", "heads": 2},
        data={"objective": "rtd", "mask_split": "auto"},
        training={"steps": 3},
    )
    found = report(run)
    assert "rtd found" in found.text("scores")
    tokens = [each["class"] or "" for each in found.named("span") if "token" in (each.get("class") or "")]
    assert any("replaced" in each for each in tokens)
    assert len(tokens) > 50
    assert found.text("examples")


def test_runs_beside_each_other_show_where_they_differ(finished: Path, tmp_path: Path) -> None:
    other = pretraining(tmp_path, training={"steps": 6})
    found = report(finished, other)
    assert "2 runs of pretraining" in found.head
    assert f"{other} finished after 6 steps" in found.head
    assert "The runs differ in:" in found.text("recipe")
    assert "training.steps 12 6" in found.text("recipe")
    assert "examples" not in found.texts


def test_names_of_files_are_only_text(tmp_path: Path) -> None:
    folder = tmp_path / ATTACK.replace("/", "")
    folder.mkdir()
    found = report(pretraining(folder, training={"steps": 2}))
    assert "onerror" not in str([attributes for _, attributes in found.tags])
