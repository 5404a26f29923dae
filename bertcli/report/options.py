"""What the user asked of a report, and what of it could not be made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from bertcli.errors import UserError

Made = TypeVar("Made")

SMALL = 10_000_000
"""Bytes of a corpus, or of labeled files, that are read again without being asked."""


@dataclass(frozen=True)
class ReportOptions:
    """
    Attributes:
        device: computes the answers of the model.
        check_data: read corpus or labeled files again, however large, for the findings of `check-data`.
        attributions: explain the first mistakes by the words of their texts.
    """

    device: str = "auto"
    check_data: bool = False
    attributions: bool = False


@dataclass
class Notes:
    """`lines`: what a reader must know of the whole report, and why a part of it is left out."""

    lines: list[str] = field(default_factory=list)

    def unless_missing(self, what: str, make: Callable[[], Made]) -> Made | None:
        """What `make` returns; None where it raises a `UserError`, which is noted as the reason."""
        try:
            return make()
        except UserError as error:
            self.lines.append(f"Without {what}: {error}")
            return None
