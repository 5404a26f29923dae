"""Reports of pretraining runs: finished, killed, running, without store or model, of any objective."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.manifest import Manifest
from bertcli.reports.build import OTHER_TEXT, OTHER_TOKENS
from bertcli.reports.run_view import read_run
from bertcli.system.files import lock_file
from bertcli.system.terminal import number
from bertcli.training.pretraining import pretrain
from tests.reports.runs import pretraining, report
from tests.small_runs import read_rows, small_config, write_corpus


def manifest_of(run: Path) -> Manifest:
    manifest = read_run(run).manifest
    assert manifest is not None
    return manifest


def going_on(folder: Path, **sections: Any) -> Path:
    """A run of 4 steps with the tokenizer of another model, which `sections` name."""
    config = small_config(write_corpus(folder / "corpus.txt"), folder / "run", training={"steps": 4})
    del config["tokenizer"]
    config |= {
        name: values if name == "model" else config.get(name, {}) | values
        for name, values in sections.items()
    }
    pretrain(check_config(PretrainConfig, config, "test"), resume=False, overwrite=False)
    return folder / "run"


def copy(run: Path, to: Path) -> Path:
    return Path(shutil.copytree(run, to / "run"))


def test_a_finished_run_has_every_part(pretrained: Path) -> None:
    found = report(pretrained)
    assert "A BERT of 2 layers × 32: mlm+nsp on corpus.txt" in found.head
    assert "finished after 12 steps" in found.head
    assert "parameters 3" in found.head
    said = json.loads((pretrained / "verdict.json").read_text())["lines"][0].removeprefix("verdict: ")
    assert f"verdict {said[0].upper()}{said[1:]}" in found.head
    last = read_rows(pretrained / "metrics.jsonl", "heldout")[-1]
    scores = found.text("scores")
    assert f"mlm loss {last['mlm_loss']:.2f}" in scores
    assert f"nsp accuracy {last['nsp_accuracy']:.3f} 0.500" in scores
    assert "perplexity" in scores
    assert "word frequencies alone" in found.text("curves")
    assert "chance 0.693" in found.text("curves")
    assert "400 entries, wordpiece, lower-cased" in found.text("corpus")
    assert "training.learning_rate 0.001" in found.text("recipe")


def test_each_example_shows_five_words_and_where_the_right_one_is(pretrained: Path) -> None:
    found = report(pretrained)
    assert found.text("examples").startswith("Masked words Sentences of held-out text")
    guesses = [each for each in found.named("li") if each.get("class") in ("right", "rank")]
    assert len(guesses) == len([each for each in found.named("mark") if each.get("class") == "blank"]) > 3


def test_every_chart_can_be_read_by_three_axes(pretrained: Path) -> None:
    found = report(pretrained)
    charts = [each for each in found.named("figure") if "chart" in (each["class"] or "")]
    shown = [each["class"] for each in found.named("div") if "by-" in (each.get("class") or "")]
    assert len(charts) == 7  # two terms with loss and accuracy, learning rate, norm, speed
    for axis in ("step", "tokens", "seconds"):
        assert shown.count(f"by by-{axis}") == len(charts)
    assert [each["id"] for each in found.named("input")] == ["axis-step", "axis-tokens", "axis-seconds"]


def test_findings_of_a_small_corpus_are_there_and_of_a_large_one_if_asked_for(
    pretrained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "What to mend" in report(pretrained).text("corpus")
    monkeypatch.setattr("bertcli.reports.pretraining.SMALL", 1000)
    assert "The text was not read again" in report(pretrained).text("corpus")
    assert "What to mend" in report(pretrained, check_data=True).text("corpus")


def test_a_killed_run_says_where_it_stopped(pretrained: Path, tmp_path: Path) -> None:
    run = copy(pretrained, tmp_path)
    rows = (run / "metrics.jsonl").read_text().splitlines(keepends=True)[:9]
    (run / "metrics.jsonl").write_text("".join(rows) + '{"step": 9')
    shutil.rmtree(run / "model")
    (run / "verdict.json").unlink()
    found = report(run)
    assert "stopped after 8 of 12 steps" in found.head
    assert "verdict " not in found.head
    assert found.text("examples")


def test_a_run_that_another_process_continues_is_running(pretrained: Path, tmp_path: Path) -> None:
    run = copy(pretrained, tmp_path)
    with lock_file(run / ".lock", "in use", "wait"):
        assert "running after 12 of 12 steps" in report(run).head
    assert "finished" in report(run).head


def test_a_run_without_its_store_or_model_has_what_its_log_knows(pretrained: Path, tmp_path: Path) -> None:
    run = copy(pretrained, tmp_path)
    for name in ("model", "checkpoints"):
        shutil.rmtree(run / name)
    config = (run / "config.yaml").read_text()
    store = next(line for line in config.splitlines() if line.strip().startswith("store:"))
    (run / "config.yaml").write_text(config.replace(store, f"  store: {tmp_path / 'gone'}"))
    found = report(run)
    assert "Without the corpus and the examples: " in found.head
    assert "Without the examples: " in found.head
    assert not {"corpus", "examples"} & found.texts.keys()
    assert "mlm loss" in found.text("scores")
    assert found.text("curves")


def test_a_skipped_step_leaves_a_gap_and_is_counted(pretrained: Path, tmp_path: Path) -> None:
    run = copy(pretrained, tmp_path)
    rows = read_rows(run / "metrics.jsonl")
    rows[3] |= {"loss": None, "mlm_loss": None, "nsp_loss": None, "grad_norm": None}
    for row in rows[3:]:
        row["skipped_steps"] = 1 if row["split"] == "train" else 0
    (run / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert "skipped steps 1, whose loss or gradient was not finite" in report(run).head


def test_terms_of_any_name_have_curves_and_scores(pretrained: Path, tmp_path: Path) -> None:
    run = copy(pretrained, tmp_path)
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


def test_a_run_that_ended_without_its_verdict_has_it_from_its_last_evaluation(
    pretrained: Path, tmp_path: Path
) -> None:
    run = copy(pretrained, tmp_path)
    (run / "verdict.json").unlink()
    assert report(run).head == report(pretrained).head
    rows = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (run / "metrics.jsonl").write_text("".join(rows[:-1]))  # without that evaluation
    found = report(run)
    assert "finished after 12 steps" in found.head
    assert "verdict " not in found.head


def test_a_run_that_goes_on_from_a_model_says_what_it_gained_and_forgot(
    pretrained: Path, tmp_path: Path
) -> None:
    general = str(write_corpus(tmp_path / "general.txt", documents=5))
    run = going_on(tmp_path, corpus={"general": [general]}, model={"init_from": str(pretrained / "model")})
    found = report(run)
    assert "A BERT of 2 layers × 32, from run/model: mlm+nsp on corpus.txt" in found.head
    _, *gains = json.loads((run / "verdict.json").read_text())["lines"]
    assert [gain.split(":")[0] for gain in gains] == ["held-out text", f"general text ({general})"]
    for gain in gains:
        assert f"{gain[0].upper()}{gain[1:]}" in found.head
    assert "word frequencies alone" in found.text("curves")


def test_a_student_has_its_teacher_and_the_distance_from_it_and_ramps_have_both_ends(
    pretrained: Path, tmp_path: Path
) -> None:
    run = going_on(
        tmp_path,
        data={"objective": "mlm", "mask_rate": [0.15, 0.3]},
        training={"batch_size": [4, 8]},
        distillation={"teacher": str(pretrained)},
    )
    found = report(run)
    assert "A BERT of 2 layers × 32 (taught by run/model): mlm on corpus.txt" in found.head
    assert "distance from the teacher's words" in found.text("scores")
    assert "distance from the teacher's hidden states" in found.text("scores")
    assert "kl loss" in found.text("curves")
    assert "a fresh model" not in found.text("curves")
    assert "training.batch_size 4, 8" in found.text("recipe")
    assert "data.mask_rate 0.15, 0.3" in found.text("recipe")


def test_losses_of_the_same_tokens_are_compared_whatever_the_special_ones(
    pretrained: Path, tmp_path: Path
) -> None:
    other = pretraining(
        tmp_path, model={"family": "roberta"}, data={"objective": "mlm"}, training={"steps": 2}
    )
    assert manifest_of(other).tokenizer_hash != manifest_of(pretrained).tokenizer_hash
    found = report(pretrained, other)
    assert "cannot be compared" not in found.head
    assert "nats a word" not in found.head


def test_losses_of_other_tokens_are_compared_by_the_word(pretrained: Path, tmp_path: Path) -> None:
    other = pretraining(tmp_path, tokenizer={"vocab_size": 300}, training={"steps": 2})
    found = report(pretrained, other)
    assert OTHER_TOKENS in found.head
    loss = read_rows(other / "metrics.jsonl", "heldout")[-1]["mlm_loss"]
    scores, _, baselines = found.head.partition(" run what ")[0].partition(" baseline ")
    assert scores.endswith(f" {number(loss * manifest_of(other).tokens_per_word)}")
    assert baselines.split() == ["0.693", "0.500"]  # of NSP; word frequencies differ with the tokens


def test_runs_beside_each_other_show_where_they_differ_and_that_losses_of_other_text_cannot_be_compared(
    pretrained: Path, tmp_path: Path
) -> None:
    other = pretraining(tmp_path, corpus={"heldout_fraction": 0.1}, training={"steps": 2})
    found = report(pretrained, other)
    assert OTHER_TEXT in found.head
    assert "2 runs of pretraining" in found.head
    assert f"{other} finished after 2 steps" in found.head
    assert "The runs differ in:" in found.text("recipe")
    assert "training.steps 12 2" in found.text("recipe")
    assert "examples" not in found.texts


def test_facts_of_any_run_are_compared(pretrained: Path, tmp_path: Path) -> None:
    other = copy(pretrained, tmp_path)
    (other / "metrics.jsonl").write_text("")
    found = report(other, pretrained)
    assert "run what device time in training tokens read speed" in found.head


def test_names_of_files_are_only_text(pretrained: Path) -> None:
    assert "onerror" in str(pretrained)
    found = report(pretrained)
    assert "onerror" not in str([attributes for _, attributes in found.tags])
