"""The parts of a report that cannot be made, and why: the others are still worth reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from bertcli.errors import UserError

Made = TypeVar("Made")


@dataclass
class Missing:
    """`lines`: a sentence for each part that is left out."""

    lines: list[str] = field(default_factory=list)

    def unless(self, what: str, make: Callable[[], Made]) -> Made | None:
        """What `make` returns; None where it raises a `UserError`, which is noted as the reason."""
        try:
            return make()
        except UserError as error:
            self.lines.append(f"without {what}: {error}")
            return None
