"""The progress display: a bar on a terminal, plain lines elsewhere; all on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from tqdm import tqdm

from bertcli.engine.step_report import StepReport
from bertcli.evaluation.evaluate import Scores
from bertcli.runs.bar import RunBar, duration, forms
from bertcli.terminal import raw_stream, visible


class Progress:
    """Shows each step; `line` prints a permanent line above the bar.

    `work`: what the steps up to a number take together, in any unit: rows become longer during a run.
    """

    def __init__(
        self, what: str, first_step: int, steps: int, log_every: int, work: Callable[[int], float] = float
    ):
        self._steps, self._log_every, self._work = steps, log_every, work
        self._started, self._first_step = time.perf_counter(), first_step
        self._bar = RunBar(
            total=steps,
            initial=first_step,
            desc=what,
            disable=not sys.stderr.isatty(),
            file=raw_stream(sys.stderr),
        )
        self._bar.work = work

    def show(self, report: StepReport, tokens_per_second: float) -> None:
        self._bar.update()
        if report.step % self._log_every and report.step != self._steps:
            return
        numbers = forms(
            _describe(report.losses, report.accuracies), _describe(report.losses, {}), tokens_per_second
        )
        if self._bar.disable:
            elapsed = time.perf_counter() - self._started
            done = self._work(report.step) - self._work(self._first_step)
            left = elapsed / done * (self._work(self._steps) - self._work(report.step))
            print(
                f"step {report.step}/{self._steps} | {numbers[0]} | {duration(left)} left",
                file=sys.stderr,
                flush=True,
            )
        else:
            self._bar.numbers = numbers
            self._bar.refresh()

    def line(self, text: str) -> None:
        tqdm.write(visible(text), file=raw_stream(sys.stderr))
        sys.stderr.flush()

    def close(self) -> None:
        self._bar.close()


def describe_scores(scores: Scores) -> str:
    """`mlm 6.12 (9.8 %) | nsp 0.69 (51 %)`, or `loss 0.31 | accuracy 0.914 | f1 of spam 0.902`."""
    metrics = [f"{scores.title(name)} {value:.4g}" for name, value in scores.numbers.items()]
    return " | ".join([_describe(scores.losses, scores.accuracies), *metrics])


def _describe(losses: dict[str, float], accuracies: dict[str, float]) -> str:
    shares = {name: f" ({accuracy:.1%})" for name, accuracy in accuracies.items()}
    return " | ".join(f"{name or 'loss'} {loss:.3f}{shares.get(name, '')}" for name, loss in losses.items())
