"""Right and given labels -> a matrix that can be read: of all labels, or of the most confused ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bertcli.report.formatting import short

MOST_LABELS = 12
"""Rows and columns of a matrix that is still read."""
MOST_CONFUSIONS = 20
LONGEST = 40
"""Characters of a label."""
OTHERS = "all others"


@dataclass(frozen=True)
class Cell:
    """How often one label was given for another; `share`: of the rows with the right label."""

    count: int
    share: float
    right: bool

    @property
    def level(self) -> int:
        """The share in tenths, for its shade; 0 only where there is nothing."""
        return 0 if not self.count else max(1, min(9, round(9 * self.share)))


@dataclass(frozen=True)
class Confusion:
    """A matrix with a row for each right label and a column for each given one.

    Attributes:
        labels: of rows and columns; the last is `OTHERS` where labels were put together.
        worst: the most frequent mistakes among all labels: right, given, how often.
        num_labels: all of them.
    """

    labels: Sequence[str]
    rows: Sequence[tuple[str, int, Sequence[Cell]]]
    worst: Sequence[tuple[str, str, int]]
    num_labels: int


def confusion(right: Sequence[str], given: Sequence[str], labels: Sequence[str]) -> Confusion:
    """The matrix of `labels` in their order; of many, those in the most mistakes, the worst first."""
    wrong = Counter(pair for pair in zip(right, given, strict=True) if pair[0] != pair[1])
    worst = [
        (short(a, LONGEST), short(b, LONGEST), count) for (a, b), count in wrong.most_common(MOST_CONFUSIONS)
    ]
    shown, rest = list(labels), False
    if len(labels) > MOST_LABELS:
        mistakes = Counter[str]()
        for (a, b), count in wrong.items():
            mistakes[a] += count
            mistakes[b] += count
        shown = sorted(labels, key=lambda label: -mistakes[label])[: MOST_LABELS - 1]
        rest = True
    numbers = {label: number for number, label in enumerate(shown)}
    size = len(shown) + rest
    counts = [[0] * size for _ in range(size)]
    for a, b in zip(right, given, strict=True):
        counts[numbers.get(a, size - 1)][numbers.get(b, size - 1)] += 1
    names = [*(short(label, LONGEST) for label in shown), *([OTHERS] if rest else [])]
    rows = []
    for i, name in enumerate(names):
        total = sum(counts[i])
        cells = [Cell(count, count / max(1, total), i == j) for j, count in enumerate(counts[i])]
        rows.append((name, total, cells))
    return Confusion(names, rows, worst, num_labels=len(labels))
