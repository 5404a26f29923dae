"""A run that learned nothing does not end without a word, and a good one says by how much."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.evaluation.evaluate import Scores
from bertcli.model.architecture import Architecture
from bertcli.runs.pretraining import pretrain
from bertcli.runs.pretraining_verdict import verdict
from bertcli.tasks.reference import Reference
from tests.small_runs import small_config

SIZES = Architecture(2048, 128, layers=2, heads=2, feed_forward=512, max_positions=128)
RECIPE = {"batch_size": 32, "learning_rate": 1.5e-3, "warmup_steps": 160, "steps": 2000}


REFERENCES = [Reference("mlm", first_loss=7.6, chance_loss=7.015, line="", predicts_words=True)]


def weigh(mlm: float | None, **sections: Any) -> str:
    value = {
        "output_dir": "run",
        "corpus": {"files": ["classics"]},
        "data": {"short_steps": 800, "mask_rate": 0.4} | sections.pop("data", {}),
        "training": RECIPE | sections.pop("training", {}),
    }
    scores = None if mlm is None else Scores({"mlm": mlm}, {"mlm": 0.3}, 1000)
    return verdict(scores, REFERENCES, check_config(PretrainConfig, value, "test"), SIZES)


def test_a_good_run_says_by_how_much() -> None:
    assert "3.522 is 3.49 nats better than word frequencies alone (7.015)" in weigh(3.522)
    assert "32.9 times as likely" in weigh(3.522)


@pytest.mark.parametrize(
    ("mlm", "words"),
    [
        (7.292, "0.28 nats worse than"),
        (7.0, "no better than"),
        (585.0, "577.99 nats worse"),
        (math.nan, "not a number"),
    ],
)
def test_a_run_that_learned_nothing_says_so(mlm: float, words: str) -> None:
    assert words in weigh(mlm)
    assert "learned nothing from context. To change: take more text" in weigh(mlm)


def test_it_names_what_to_change() -> None:
    assert "training.learning_rate is 5, auto takes 0.0015" in weigh(585.0, training={"learning_rate": 5})
    assert "training.steps: 320 rows were read" in weigh(7.0, training={"steps": 10})
    assert "data.short_steps is 0" in weigh(7.0, data={"short_steps": 0})


def test_nothing_held_out_is_no_verdict() -> None:
    assert "verdict: none" in weigh(None)


def test_the_log_and_the_card_say_it(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = small_config(corpus, tmp_path / "run", training={"learning_rate": 5.0})
    model = pretrain(check_config(PretrainConfig, value, "test"), resume=False, overwrite=False)
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("verdict: ")]
    assert "the model learned nothing from context" in said[0]
    assert "training.learning_rate is 5, auto takes" in said[0]
    assert "the model learned nothing from context" in (model / "README.md").read_text()
