"""The progress of a run in one line: what fits the width of the terminal, the most important part first."""

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from tqdm import tqdm
from tqdm.std import Bar  # pyright: ignore[reportAttributeAccessIssue]

from bertcli.system.terminal import raw_stream, visible
from bertcli.training.checkpoint import RunState
from bertcli.training.scores import Scores, StepReport

LEAST_BAR = 10
"""Least width of a bar in characters; a shorter bar shows nothing."""
UNKNOWN_WIDTH = 80


class RunBar(tqdm):  # pyright: ignore[reportMissingTypeArgument]
    """A tqdm bar with its own line, which shows the longest form of `numbers` that fits."""

    numbers: tuple[str, ...] = ()
    work: Callable[[int], float] = staticmethod(float)
    """A function: number of steps -> their total work, in any unit; by default all steps are equal."""

    def __str__(self) -> str:
        state, work = self.format_dict, self.work
        done, steps = state["n"], state["total"]
        of_last = work(done) - work(done - 1) if done else 0.0
        to_come = (work(steps) - work(done)) / of_last if of_last else steps - done
        return bar_line({**state, "to_come": to_come}, self.numbers, _columns(self.fp) - 1)


def forms(losses: str, bare: str, tokens_per_second: float) -> tuple[str, ...]:
    """The numbers of a step in several forms, the longest first. `bare`: the losses without accuracies."""
    short = f"{_short(tokens_per_second)} tokens/s"
    return (
        f"{losses} | {tokens_per_second:,.0f} tokens/s",
        f"{losses} | {short}",
        losses,
        f"{bare} | {short}",
        bare,
        bare.partition(" | ")[0],
    )


def bar_line(state: Mapping[str, Any], numbers: tuple[str, ...], width: int) -> str:
    """The line of the bar, at most `width` characters.

    `state`: tqdm's own numbers (`tqdm.format_dict`); `to_come`: remaining work, in units of the last step.
    """
    done, steps = state["n"], state["total"]
    head = f"{state['prefix']} {done}/{steps}"
    charset = Bar.ASCII if state["ascii"] else Bar.UTF
    left = _left(state)
    for form, with_bar in _candidates(numbers):
        rest = " | ".join(filter(None, (left, form)))
        if with_bar:
            room = width - len(f"{head} || {rest}")
            if room >= LEAST_BAR:
                return f"{head} |{Bar(done / steps, room, charset=charset)}| {rest}"
        elif len(line := f"{head} | {rest}") <= width:
            return line
    return head[:width]


def _candidates(numbers: tuple[str, ...]) -> list[tuple[str, bool]]:
    """Candidates for the line: its numbers, and True if a bar is with them; the first that fits is shown."""
    full, shorter, *others = numbers or ("", "")
    widest = [(full, True), (shorter, True), (full, False), (shorter, False)]
    return [*widest, *((fewer, with_bar) for fewer in others for with_bar in (True, False)), ("", False)]


def _left(state: Mapping[str, Any]) -> str:
    done = state["n"] - state["initial"]
    rate = state["rate"] or (done / state["elapsed"] if state["elapsed"] else 0.0)
    return f"{duration(state['to_come'] / rate)} left" if rate else ""


def duration(seconds: float) -> str:
    """The time as `1:02:03`, or as `2:03` below an hour."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def _short(number: float) -> str:
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.{int(number < 10 * unit)}f}{name}"
    return f"{number:.0f}"


def _columns(stream: Any) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or UNKNOWN_WIDTH
    except OSError:  # the terminal was closed
        return UNKNOWN_WIDTH


class Progress:
    """The display of the steps; `line` prints a permanent line above the bar.

    `work`: number of steps -> their total work, in any unit, because rows become longer during a run.
    """

    def __init__(self, what: str, first_step: int, steps: int, log_every: int, work: Callable[[int], float]):
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
    """The scores: `mlm 6.12 (9.8 %) | nsp 0.69 (51 %)`, or `loss 0.31 | accuracy 0.9 | f1 of spam 0.9`."""
    metrics = [f"{scores.title(name)} {value:.4g}" for name, value in scores.numbers.items()]
    return " | ".join([_describe(scores.losses, scores.accuracies), *metrics])


def _describe(losses: dict[str, float], accuracies: dict[str, float]) -> str:
    shares = {name: f" ({accuracy:.1%})" for name, accuracy in accuracies.items()}
    return " | ".join(f"{name or 'loss'} {loss:.3f}{shares.get(name, '')}" for name, loss in losses.items())


class TrainingClock:
    """A clock that counts the run's seconds of training, and its speed since the last row of the log."""

    def __init__(self, state: RunState):
        self._now = time.perf_counter()
        self._started, self._logged = self._now - state.seconds, self._now
        self._tokens_logged = state.tokens

    def read(self) -> float:
        """Seconds of training until now."""
        self._now = time.perf_counter()
        return self._now - self._started

    def tokens_per_second(self, tokens: int) -> float:
        """The speed until the last `read`, when the run had read `tokens` tokens."""
        return (tokens - self._tokens_logged) / (self._now - self._logged)

    def mark_logged(self, tokens: int) -> None:
        """Start the next speed at the last `read`, for which a row of the log was written."""
        self._tokens_logged, self._logged = tokens, self._now

    def leave_out(self) -> None:
        """Exclude the time since the last `read`."""
        pause = time.perf_counter() - self._now
        self._started, self._logged = self._started + pause, self._logged + pause
