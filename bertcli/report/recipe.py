"""The configs of some runs -> their keys side by side, and in which of them the runs differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bertcli.config.load import flatten
from bertcli.report.formatting import short
from bertcli.report.run_view import RunView

_LONGEST = 120
"""Characters of a value."""
_MOST = 200
"""Keys: a weight for each of many labels makes many."""
_OF_THE_RUN = ("output_dir", "corpus.store", "seeds")
"""Differences that say nothing about what was learned."""


@dataclass(frozen=True)
class Setting:
    """A key of the configs, and its value in each run."""

    key: str
    values: Sequence[str]
    differs: bool


@dataclass(frozen=True)
class Recipe:
    """All settings, those in which the runs differ, and how many keys were left out."""

    settings: Sequence[Setting]
    different: Sequence[Setting]
    left_out: int


def recipe_of(views: Sequence[RunView]) -> Recipe:
    """The effective configs, as the runs wrote them."""
    flat = [flatten(view.config.model_dump(mode="json")) for view in views]
    settings = []
    for key in dict.fromkeys(key for each in flat for key in each):
        values = [each.get(key) for each in flat]
        differs = any(value != values[0] for value in values) and key not in _OF_THE_RUN
        settings.append(Setting(key, [_shown(value) for value in values], differs))
    different = [setting for setting in settings if setting.differs]
    return Recipe(settings[:_MOST], different[:_MOST], max(0, len(settings) - _MOST))


def _shown(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return short(", ".join(map(_shown, value)), _LONGEST)
    return short(f"{value:g}" if isinstance(value, float) else str(value), _LONGEST)
