"""A run on several sources: what it says of each, how each is judged, and what a replay saves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertcli.training.scores import Scores, mixed
from tests.small_runs import small_config, write_config


def test_a_term_that_only_sources_without_a_share_have_is_their_mean() -> None:
    def scores(**losses: float) -> Scores:
        return Scores(losses, {}, 10)

    sources = {"a": scores(mlm=4.0, nsp=0.6), "b": scores(mlm=2.0), "c": scores(mlm=9.0, nsp=0.2)}
    assert mixed(sources, {"a": 0.0, "b": 1.0, "c": 0.0}).losses == {"mlm": 2.0, "nsp": pytest.approx(0.4)}
    assert mixed(sources, {"a": 0.25, "b": 0.75, "c": 0.0}).losses == {"mlm": 2.5, "nsp": 0.6}


@pytest.fixture
def config(corpus: Path, tmp_path: Path) -> Path:
    chapters = corpus.read_text(encoding="utf-8").split("\n\n")
    (tmp_path / "many.txt").write_text("\n\n".join(chapters[4:]), encoding="utf-8")
    (tmp_path / "few.txt").write_text("\n\n".join(chapters[:4]), encoding="utf-8")
    value = small_config(corpus, tmp_path / "run")
    value["corpus"] = {
        "sources": [
            {"files": str(tmp_path / "many.txt"), "weight": [1.0, 1.0]},
            {"files": str(tmp_path / "few.txt"), "weight": [0.0, 3.0], "language": "de"},
        ],
        "heldout_fraction": 0.2,
    }
    return write_config(tmp_path / "c.yaml", value)


def test_each_source_is_judged_and_the_whole_has_the_shares_of_the_end(config: Path, run_bertcli) -> None:
    code, _, said = run_bertcli("pretrain", config, "--set", "training.ramp_steps=12")
    assert code == 0, said
    run = config.parent / "run"
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last = [row for row in rows if row["split"] == "heldout"][-1]
    for term in ("mlm_loss", "nsp_loss"):
        assert last[term] == pytest.approx(0.25 * last[f"many/{term}"] + 0.75 * last[f"few/{term}"])
    assert "runs of sentences, because the source few has only 4 documents" in said
    assert "source many: " in said
    shares = [line.partition("tokens, ")[2] for line in said.splitlines() if line.startswith("source ")]
    # The mean of 3t / (11 + 3t) over the steps t = 0 to 11 is 0.5225: 50 of 96 rows.
    assert [share.partition(" of")[0] for share in shares] == ["47.9%", "52.1%"]
    card = (run / "model" / "README.md").read_text(encoding="utf-8")
    assert "language: [en, de]" in card
    assert "of the rows |" in card
    assert "| few/mlm_loss |" in card
    assert run_bertcli("report", run)[0] == 0
    report = (run / "report.html").read_text(encoding="utf-8")
    assert "75.0% of the rows" in report
    assert "few/mlm loss" in report
    assert "corpus.sources.1.weight" in report


def test_a_source_that_is_read_often_is_warned_of(config: Path, run_bertcli) -> None:
    few = "\n\n".join(f"The cat sat on mat {number}. It was warm there." for number in range(6))
    (config.parent / "few.txt").write_text(few, encoding="utf-8")
    keys = ("--set", "training.steps=20", "--set", "training.ramp_steps=1", "--set", "evaluation.batches=1")
    code, _, said = run_bertcli("estimate", config, *keys, "--device", "l4")
    assert code == 0, said
    code, _, said = run_bertcli("pretrain", config, *keys, "--set", "model.layers=1")
    assert code == 0, said
    assert "and the model memorizes it: lower its weight, or give more text" in said


def test_going_on_shows_the_gain_on_each_source(config: Path, run_bertcli) -> None:
    assert run_bertcli("pretrain", config)[0] == 0
    begun = config.parent / "run" / "model"
    keys = [f"model={{init_from: {begun}}}", "tokenizer={}", f"output_dir={config.parent / 'more'}"]
    code, _, said = run_bertcli("pretrain", config, *(part for key in keys for part in ("--set", key)))
    assert code == 0, said
    assert "held-out text of many: " in said
    assert "held-out text of few: " in said
    assert "general text (classics): " in said
