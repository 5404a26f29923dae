"""What a check found amiss -> lines to read, the worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

PLACES = 3
"""So many places of one fault are named; the others are counted."""
_EXCERPT = 60
"""Characters; and half as many again where some of them are spelled out."""


@dataclass(frozen=True)
class Finding:
    """One fault of the data, wherever it stands.

    Attributes:
        fails: the run would end in an error; False: it would run, and learn worse.
        problem: what is wrong, and how much of it.
        mend: what to do; empty where `problem` says that already.
        places: the first few: the file, where in it, what stands there.
        share: of the text, or of the rows, that are concerned: what orders findings of one kind.
    """

    fails: bool
    problem: str
    mend: str = ""
    places: tuple[str, ...] = ()
    share: float = 0.0


@dataclass
class Places:
    """How often a fault was seen, and the first few places."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, count: int, places: Sequence[str]) -> None:
        """`places` are the first of the `count` new ones."""
        self.count += count
        self.first += places[: PLACES - len(self.first)]


def excerpt(text: str, at: int = 0) -> str:
    """What stands around character `at` of a line, quoted, control characters spelled out."""
    start = max(0, min(at - _EXCERPT // 2, len(text) - _EXCERPT))
    before, after = "..." if start else "", "..." if start + _EXCERPT < len(text) else ""
    shown = repr(f"{before}{text[start : start + _EXCERPT]}{after}")
    longest = _EXCERPT * 3 // 2
    return shown if len(shown) <= longest else f"{shown[:longest]}...{shown[0]}"


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """What fails the run, then the rest; within each what concerns most of the data first."""
    return sorted(findings, key=lambda finding: (not finding.fails, -finding.share))


def findings_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """`would_fail` and `findings`, the worst first."""
    return {
        "would_fail": any(finding.fails for finding in findings),
        "findings": [asdict(finding) for finding in worst_first(findings)],
    }


def findings_text(findings: Sequence[Finding]) -> str:
    """A numbered paragraph for each, the worst first."""
    if not findings:
        return "nothing to mend"
    lines = ["what to mend, the worst first:"]
    for number, finding in enumerate(worst_first(findings), start=1):
        kind = "the run would fail" if finding.fails else "warning"
        lines.append(f"{number}. {kind}: {finding.problem}")
        lines += [f"     {place}" for place in finding.places]
        lines += [f"   {finding.mend}"] if finding.mend else []
    return "\n".join(lines)
