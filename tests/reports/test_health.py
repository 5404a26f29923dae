"""Reference lines, and warnings when a run is sick; by terms, whatever they are called."""

from __future__ import annotations

from dataclasses import replace

from bertcli.objectives.base import Reference
from bertcli.reports.pretraining_verdict import Health
from bertcli.training.scores import Scores, StepReport

WORDS = Reference("words", first_loss=6.0, chance_loss=5.0, line="the entropy", predicts_words=True)
LABEL = Reference("label", first_loss=0.7, chance_loss=0.7, line="by chance", chance_accuracy=0.5)


def report(**losses: float) -> StepReport:
    return StepReport(losses, {}, 10, step=1, learning_rate=1e-3, grad_norm=1.0, skipped=False)


def test_the_lines_name_each_term() -> None:
    lines = ["expected first loss: words 6.000 + label 0.700", "the entropy", "by chance"]
    assert Health([WORDS, LABEL], steps=10).lines() == lines
    trained = Reference("words", first_loss=None, chance_loss=5.0, line="the entropy", predicts_words=True)
    assert Health([trained], steps=10).lines() == ["the entropy"]


def test_a_first_loss_that_is_not_a_fresh_models_is_named() -> None:
    health = Health([WORDS, LABEL], steps=10)
    assert health.first_step_warnings(report(words=6.1, label=0.8)) == []
    (warning,) = health.first_step_warnings(report(words=6.1, label=1.9))
    assert "the first label loss is 1.900, expected 0.700" in warning
    skipped = replace(report(words=90.0, label=0.7), skipped=True)
    assert health.first_step_warnings(skipped) == []


def test_a_plateau_is_named_once_the_run_had_time_to_leave_it() -> None:
    health = Health([WORDS, LABEL], steps=1000)
    stuck = Scores({"words": 5.0, "label": 0.7}, {"words": 0.1, "label": 0.5}, 10)
    assert health.plateau_warnings(stuck, 299) == []
    assert len(health.plateau_warnings(stuck, 300)) == 1
    assert health.plateau_warnings(Scores({"words": 4.0, "label": 0.7}, {}, 10), 300) == []
