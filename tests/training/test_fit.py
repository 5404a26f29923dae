"""What is done with the reports of a run: rows, warnings, evaluations, the end."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from bertcli.batches.share import MicroBatch, Share
from bertcli.config.run import DecidedPretraining, as_kind
from bertcli.folders.run_layout import RunLayout
from bertcli.objectives.base import Reference
from bertcli.objectives.masked_language import MaskedLanguage
from bertcli.objectives.registry import NEXT_SENTENCE
from bertcli.reports.pretraining_verdict import Health
from bertcli.system.errors import UserError
from bertcli.training.checkpoint import CheckpointWriter, RunState
from bertcli.training.fit import Fit
from bertcli.training.lifecycle import Prepared, Run, steps_between_checkpoints
from bertcli.training.loop import LoopSettings
from bertcli.training.metrics_log import MetricsLog, read_metrics
from bertcli.training.optimizer import LossScale
from bertcli.training.progress import Progress
from bertcli.training.scores import Scores, StepReport
from tests.decided import recipe
from tests.small_runs import read_rows, small_config

HEALTH = Health(
    references=[
        Reference(
            "mlm",
            first_loss=6.0,
            chance_loss=5.0,
            line="",
            predicts_words=True,
        ),
        Reference("nsp", first_loss=0.693, chance_loss=0.693, line="", chance_accuracy=0.5),
    ],
    steps=10,
)


def report(step: int, mlm: float = 6.0, skipped: bool = False) -> StepReport:
    return StepReport(
        {"mlm": mlm, "nsp": 0.7},
        {"mlm": 0.1, "nsp": 0.5},
        100,
        step=step,
        learning_rate=1e-3,
        grad_norm=2.0,
        skipped=skipped,
    )


SCORES = Scores({"mlm": 4.0, "nsp": 0.6}, {"mlm": 0.2, "nsp": 0.6}, 1000)


@dataclass(frozen=True, kw_only=True)
class Given(Prepared):
    """A run that is told its scores."""

    scores: Callable[[], Scores]

    @property
    def is_evaluated(self) -> bool:
        return True

    def lines(self) -> Iterator[str]:
        raise AssertionError

    def micro_batches(self, first_step: int) -> Iterator[list[MicroBatch]]:
        raise AssertionError

    def evaluate(self) -> Scores:
        return self.scores()

    def save(self, folder: Path, weights: Mapping[str, Tensor]) -> None:
        raise AssertionError

    def read_weights(self, folder: Path) -> Mapping[str, Tensor]:
        raise AssertionError

    @property
    def health(self) -> Health:
        return HEALTH


def run(
    tmp_path: Path,
    reports: Iterable[StepReport],
    evaluate: Callable[[], Scores] = lambda: SCORES,
    state: RunState | None = None,
    saved: list[int] | None = None,
    verb: str = "pretrain",
):
    saved = [] if saved is None else saved
    rows = read_metrics(tmp_path / "metrics.jsonl")
    log = MetricsLog(RunLayout(tmp_path))

    class Checkpoints(CheckpointWriter):
        def save(self, state: RunState) -> None:
            saved.append(state.step)

    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters())
    checkpoints = Checkpoints(RunLayout(tmp_path), model, optimizer, lambda path, weights: None, 1)
    sections = {
        "training": {"steps": 10, "max_bad_steps": 3},
        "evaluation": {"every_steps": 4},
        "checkpoint": {"every_steps": 5},
        "logging": {"every_steps": 5},
    }
    asked = recipe(small_config(tmp_path / "corpus.txt", tmp_path, **sections))
    machine = {"data": {"workers": 0}, "training": {"compile": False, "ramp_steps": 10}}
    own = Run(verb, asked, resume=False, given=tmp_path)
    prepared = Given(
        config=as_kind(DecidedPretraining, asked, machine),
        model=model,
        task=MaskedLanguage(NEXT_SENTENCE),
        loop=LoopSettings(1, torch.device("cpu"), "fp32", max_grad_norm=1.0, rate=float),
        share=Share(8),
        steps=10,
        best=None,
        scores=evaluate,
    )
    progress = Progress("train", 0, 10, log_every=5, work=float)
    state = state or RunState()
    try:
        fit = Fit(own, prepared, checkpoints, log=log, progress=progress)
        end, _ = fit.process(iter(reports), state, rows)
    finally:
        progress.close()
        log.close()
    return end, saved


def test_rows_saves_and_evaluations_come_at_their_steps(tmp_path: Path) -> None:
    end, saved = run(tmp_path, [report(step) for step in range(1, 11)])
    rows = read_rows(tmp_path / "metrics.jsonl")
    assert [row["step"] for row in rows if row["split"] == "train"] == [1, 5, 10]
    assert [row["step"] for row in rows if row["split"] == "heldout"] == [4, 8, 10]
    assert saved == [5, 10]
    assert (end.step, end.tokens, end.skipped_steps) == (10, 1000, 0)
    assert rows[0].keys() == {
        *("step", "split", "loss", "mlm_loss", "nsp_loss", "mlm_accuracy", "nsp_accuracy"),
        *("learning_rate", "grad_norm", "tokens", "tokens_per_second", "seconds", "skipped_steps"),
    }
    assert rows[0]["loss"] == pytest.approx(6.7)


def test_skipped_steps_are_named_and_too_many_in_a_row_stop_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = [report(1)] + [report(step, float("nan"), skipped=True) for step in range(2, 11)]
    with pytest.raises(UserError, match="3 steps in a row gave a non-finite loss or gradient"):
        run(tmp_path, reports)
    said = capsys.readouterr().err
    assert (
        "step 2 was skipped, the weights are unchanged: mlm_loss nan, nsp_loss 0.7, gradient norm 2.0" in said
    )
    assert "(3 in a row, 3 in total)" in said


@pytest.mark.parametrize(
    ("verb", "saved", "start"),
    [
        (
            "pretrain",
            [3, 12],
            "Start a new run from the last checkpoint (model.init_from: {}/step-00000012) with",
        ),
        ("finetune", [3], "Start a new run from the last checkpoint (model: {}/step-00000003) with"),
        ("pretrain", [], "Start a new run with a lower training.learning_rate"),
    ],
)
def test_a_run_that_diverged_says_from_where_to_start(
    tmp_path: Path, verb: str, saved: list[int], start: str
) -> None:
    for step in saved:
        RunLayout(tmp_path).step(step).mkdir(parents=True)
    reports = [report(step, float("nan"), skipped=True) for step in range(1, 4)]
    with pytest.raises(UserError, match=re.escape(start.format(tmp_path / "checkpoints"))):
        run(tmp_path, reports, verb=verb)


def test_a_loss_scale_is_kept_shown_and_logged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reports = [
        replace(report(step, skipped=step == 10), loss_scale=LossScale(512.0)) for step in range(1, 11)
    ]
    end, _ = run(tmp_path, reports)
    assert end.loss_scale == LossScale(512.0)
    assert "(1 in a row, 1 in total); the loss scale is now 512\n" in capsys.readouterr().err
    assert read_rows(tmp_path / "metrics.jsonl", "train")[-1]["loss_scale"] == 512.0


def test_bad_steps_are_counted_across_a_resume(tmp_path: Path) -> None:
    before = RunState(step=4, skipped_steps=2, bad_steps_in_row=2)
    with pytest.raises(UserError, match="the last one step 5"):
        run(tmp_path, [report(5, float("inf"), skipped=True)], state=before)


def test_a_good_step_between_forgives(tmp_path: Path) -> None:
    bad = {2, 3, 5, 6, 8, 9}
    end, _ = run(tmp_path, [report(step, skipped=step in bad) for step in range(1, 11)])
    assert (end.skipped_steps, end.bad_steps_in_row) == (6, 0)


def steps_of(tmp_path: Path, split: str) -> list[int]:
    return [row["step"] for row in read_rows(tmp_path / "metrics.jsonl", split)]


def told_to_stop() -> Scores:
    signal.raise_signal(signal.SIGTERM)
    raise AssertionError("went on after a signal")


def test_a_signal_breaks_off_an_evaluation_which_comes_first_when_the_run_goes_on(tmp_path: Path) -> None:
    reports, saved = [report(step) for step in range(1, 11)], []
    for going_on_from in (0, 4, 4):  # then before its first step, twice
        with pytest.raises(SystemExit) as end:
            run(tmp_path, reports[going_on_from:], told_to_stop, RunState(step=going_on_from), saved)
        assert end.value.code == 128 + signal.SIGTERM
    assert saved == [4]
    assert steps_of(tmp_path, "heldout") == []
    run(tmp_path, reports[4:], state=RunState(step=4))
    assert steps_of(tmp_path, "heldout") == [4, 8, 10]


def test_after_a_signal_no_evaluation_begins(tmp_path: Path) -> None:
    saved: list[int] = []

    def reports() -> Iterator[StepReport]:
        yield from map(report, (1, 2, 3))
        signal.raise_signal(signal.SIGTERM)
        yield report(4)

    with pytest.raises(SystemExit):
        run(tmp_path, reports(), told_to_stop, saved=saved)
    assert saved == [4]


@pytest.mark.parametrize("step", [8, 10])
def test_an_evaluation_that_was_made_is_not_made_again(tmp_path: Path, step: int) -> None:
    run(tmp_path, [report(each) for each in range(1, step + 1)])
    run(tmp_path, [report(each) for each in range(step + 1, 11)], state=RunState(step=step))
    assert steps_of(tmp_path, "heldout") == [4, 8, 10]


def test_a_strange_first_loss_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path, [report(1, mlm=9.0)])
    assert "the first mlm loss is 9.000, expected 6.000" in capsys.readouterr().err


@pytest.mark.parametrize(("heldout", "warns"), [(5.05, True), (4.5, False)])
def test_a_plateau_at_the_unigram_entropy_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], heldout: float, warns: bool
) -> None:
    scores = replace(SCORES, losses={"mlm": heldout, "nsp": 0.6})
    run(tmp_path, [report(step) for step in range(1, 5)], lambda: scores)
    assert ("only word frequencies were learned" in capsys.readouterr().err) == warns


@pytest.mark.parametrize(
    ("every", "epoch", "steps"), [(None, 6, 24), (None, 20, 20), (None, 19, 38), (None, 267, 267), (7, 6, 7)]
)
def test_checkpoints_follow_epochs_but_not_every_few_steps(every: int | None, epoch: int, steps: int) -> None:
    assert steps_between_checkpoints(every, epoch) == steps
