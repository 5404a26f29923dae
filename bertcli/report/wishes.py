"""What the user asked of a report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wishes:
    """
    Attributes:
        device: computes the answers of the model.
        check_data: read corpus or labeled files again, however large, for the findings of `check-data`.
        attributions: find the words that decided the first mistakes.
    """

    device: str = "auto"
    check_data: bool = False
    attributions: bool = False
