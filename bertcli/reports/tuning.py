"""The result of a search for a better config: its verdict, the config that it recommends, and its page."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from statistics import fmean, variance
from typing import Any

import numpy as np

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.section import Section
from bertcli.config.yaml_text import Block, Line, commented_yaml
from bertcli.reports.chart import MARKERS, Curve, Level, plot
from bertcli.reports.page import page
from bertcli.system.terminal import duration, number
from bertcli.tasks.scores import mean_ranks
from bertcli.training.best import goodness

_FEWEST = 4
"""Fewest trials whose ranks say anything."""


@dataclass(frozen=True)
class Trial:
    """A trial that has ended.

    Attributes:
        score: its best score on the dev data; None: it diverged.
        values: each key that is searched, with its value; `changed`: those that differ from the given config.
        fresh: scores of runs with the same values and fresh seeds.
    """

    number: int
    score: float | None
    is_pruned: bool
    values: Mapping[str, Any]
    changed: Mapping[str, Any]
    seconds: float
    fresh: Sequence[float] = ()


@dataclass(frozen=True)
class Tuning:
    """A search that has ended.

    Attributes:
        metric, title: the metric's key, and its name for people.
        trials: in their order; the first is that of the given config, and complete.
        best: the number of the complete trial with the best score.
        given: each key that is searched, with its value in the given config.
        seconds: the time of the search.
    """

    metric: str
    title: str
    trials: Sequence[Trial]
    best: int
    given: Mapping[str, Any]
    seconds: float

    @property
    def best_trial(self) -> Trial:
        """The complete trial with the best score."""
        return next(trial for trial in self.trials if trial.number == self.best)

    @property
    def compared(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """The scores of the given and of the best config by which they are compared; None: too few.

        The first trial counts, because it was not selected for its score; that of the best does not.
        """
        first, best = self.trials[0], self.best_trial
        scores = [first.score or 0.0, *first.fresh], best.fresh
        return scores if best is not first and min(map(len, scores)) > 1 else None

    @property
    def gain(self) -> float | None:
        """How much better the mean of the best config is; None: they were not compared."""
        if self.compared is None:
            return None
        given, best = (goodness(self.metric, fmean(scores)) for scores in self.compared)
        return best - given

    @property
    def noise(self) -> float | None:
        """The standard deviation over seeds, that of both configs pooled; None: they were not compared.

        It is infinite if a run diverged.
        """
        if self.compared is None:
            return None
        if not all(map(math.isfinite, chain(*self.compared))):
            return math.inf
        squares = sum((len(scores) - 1) * variance(scores) for scores in self.compared)
        return math.sqrt(squares / (sum(map(len, self.compared)) - 2))

    @property
    def recommended(self) -> int:
        """The number of the trial whose config is recommended: the best one if fresh seeds show a gain."""
        is_more = self.gain is not None and self.noise is not None and self.gain > self.noise
        return self.best if is_more else 0

    @property
    def verdict(self) -> str:
        """What the search found, in one or two sentences."""
        first, best = self.trials[0], self.best_trial
        if len(self.trials) == 1:
            took = duration(first.seconds)
            return f"there was time for the given config alone, which took {took}: give more --minutes"
        if best is first:
            return f"no trial has a better {self.title} than the given config: keep the given config"
        trial, title = f"trial {best.number}", self.title
        if self.compared is None or self.gain is None or self.noise is None:
            return (
                f"{trial} has {title} {number(best.score)}, the given config {number(first.score)}. There "
                "was no time for fresh seeds, so the gain may be chance: keep the given config, or --resume "
                "with more --minutes"
            )
        given, own = (number(fmean(scores)) for scores in self.compared)
        is_more = self.recommended == self.best
        return (
            f"with fresh seeds {trial} has a mean {title} of {own}, the given config of {given}. The gain of "
            f"{number(self.gain)} is {'' if is_more else 'not '}more than seeds differ "
            f"({number(self.noise)}){'' if is_more else ': keep the given config'}"
        )

    @property
    def influence(self) -> dict[str, float | None]:
        """Key -> the correlation of its ranks with those of the scores, from -1 to 1; None: unknown.

        A positive number says that trials with larger values were better.
        """
        scored = [trial for trial in self.trials if trial.score is not None]
        found: dict[str, float | None] = dict.fromkeys(self.given)
        for key, value in self.given.items():
            values = [trial.values[key] for trial in scored]
            if not isinstance(value, str) and len(scored) >= _FEWEST and len(set(values)) > 1:
                good = [goodness(self.metric, trial.score) for trial in scored]
                of_values, of_scores = (mean_ranks(np.asarray(each)) for each in (values, good))
                found[key] = float(np.corrcoef(of_values, of_scores)[0, 1]) if len(set(good)) > 1 else None
        return found

    def as_json(self) -> dict[str, Any]:
        """The result, as `--json` prints it; a score that is no number is null."""
        found = {
            "metric": self.metric,
            "verdict": self.verdict,
            "recommended": self.recommended,
            "best": self.best,
            "gain": self.gain,
            "noise": self.noise,
            "seconds": round(self.seconds, 1),
            "influence": self.influence,
            "trials": [asdict(trial) for trial in self.trials],
        }
        return json.loads(json.dumps(found), parse_constant=lambda name: None)

    def config_text(self, given: FinetuneConfig) -> str:
        """The YAML of the recommended config: the keys of `given`, and those that changed, with comments."""
        changed = next(each for each in self.trials if each.number == self.recommended).changed
        lines = list(self._lines(given, changed, ""))
        return commented_yaml(lines, f"{self.verdict}.")

    def _lines(self, section: Section, changed: Mapping[str, Any], prefix: str) -> Iterator[Line | Block]:
        written = section.model_dump(mode="json")
        for name in type(section).model_fields:
            key, value = prefix + name, getattr(section, name)
            if isinstance(value, Section):
                if inner := list(self._lines(value, changed, f"{key}.")):
                    yield Block(name, inner)
            elif key in changed:
                yield Line(name, changed[key], beside=f"in the given config {self.given[key]}")
            elif name in section.model_fields_set:
                yield Line(name, written[name])

    def page(self, name: str) -> str:
        """The page of the search in the folder `name`."""
        scored = [trial for trial in self.trials if trial.score is not None]
        points = [(float(trial.number), trial.score or 0.0) for trial in scored]
        level = Level(self.trials[0].score or 0.0, "given config")
        values = {
            "tuning": self,
            "name": name,
            "markers": MARKERS,
            "chart": plot([Curve(self.title, 0, "strong", points=points)], [level], "trial"),
            "mean": fmean,
        }
        return page(f"{name}: search", "tuning.html.j2", values)
