"""The runs of several seeds -> each score by seed, its mean and its range."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bertcli.report.curves import MOST_SERIES
from bertcli.report.run_view import RunView
from bertcli.report.scores import chosen_row, scores_of


@dataclass(frozen=True)
class SeedScore:
    """One score of all seeds; None where a seed has not got so far. `baseline`, `meaning`: of `Score`."""

    name: str
    baseline: str
    meaning: str
    values: Sequence[float | None]
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class SeedTable:
    """The names of the runs, and a row for each score."""

    names: Sequence[str]
    scores: Sequence[SeedScore]


def seed_table(view: RunView) -> SeedTable | None:
    """None: no seed was evaluated yet. Mean and range are of all seeds, also those that are not listed."""
    rows = [chosen_row(each) or {} for each in view.seeds]
    if not any(rows):
        return None
    scores = []
    for score in scores_of(view):
        values = [row.get(score.key) for row in rows]
        known = [value for value in values if value is not None and math.isfinite(value)]
        if known:
            scores.append(
                SeedScore(
                    score.name,
                    score.baseline,
                    score.meaning,
                    values=values[:MOST_SERIES],
                    mean=float(np.mean(known)),
                    low=min(known),
                    high=max(known),
                )
            )
    return SeedTable([each.name for each in view.seeds[:MOST_SERIES]], scores)
