"""A value that is the same in every step, or moves from a start to an end."""

from __future__ import annotations

from typing import TypeVar

Number = TypeVar("Number", int, float)


def ends(value: Number | tuple[Number, Number]) -> tuple[Number, Number]:
    """(start, end) of a value of a config."""
    return value if isinstance(value, tuple) else (value, value)


def mean_of(value: float | tuple[float, float]) -> float:
    """Over the steps of a ramp."""
    return sum(ends(value)) / 2


def value_at(value: float | tuple[float, float], step: int, ramp_steps: int) -> float:
    """The value of step `step` (counted from 0): linear, `ramp_steps` steps from start to end, then the
    end. A pure function of the step, as the learning rate is."""
    start, end = ends(value)
    return start + (end - start) * min(1.0, step / max(1, ramp_steps - 1))


def shown(value: float | tuple[float, float], form: str = ",") -> str:
    """In words: `64 to 256`."""
    start, end = ends(value)
    return f"{end:{form}}" if start == end else f"{start:{form}} to {end:{form}}"
