"""The findings of a check, and their output: the worst first."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

from bertcli.config.section import Decoding
from bertcli.corpus.encodings import bad_bytes_advice
from bertcli.corpus.streams import find_bad_lines
from bertcli.system.errors import Finding, UserError
from bertcli.system.remote import InputPath

Where = TypeVar("Where")

PLACES = 3
"""Number of places of one fault that are named; the others are only counted."""
_EXCERPT = 60
"""Number of characters of an excerpt; spelled-out control characters add up to half as many."""


@contextmanager
def failing(findings: list[Finding], share: float = 1.0) -> Iterator[None]:
    """A context that turns a `UserError`, which would stop a run, into a finding."""
    try:
        yield
    except UserError as error:
        findings.append(Finding(str(error), share=share, fails=True))


@dataclass
class Places(Generic[Where]):
    """The places of a fault: their number, their bytes of text, and the first few."""

    count: int = 0
    num_bytes: int = 0
    first: list[Where] = field(default_factory=list)

    def add(self, count: int, places: Sequence[Where], num_bytes: int = 0) -> None:
        """Add `count` places; `places` are the first of them."""
        self.count, self.num_bytes = self.count + count, self.num_bytes + num_bytes
        self.first += places[: PLACES - len(self.first)]


def excerpt(text: str, at: int = 0) -> str:
    """The text around character `at` of a line, quoted, with control characters escaped."""
    start = max(0, min(at - _EXCERPT // 2, len(text) - _EXCERPT))
    before, after = "..." if start else "", "..." if start + _EXCERPT < len(text) else ""
    shown = repr(f"{before}{text[start : start + _EXCERPT]}{after}")
    longest = _EXCERPT * 3 // 2
    return shown if len(shown) <= longest else f"{shown[:longest]}...{shown[0]}"


def bad_bytes_findings(path: InputPath, decoding: Decoding, share: float) -> tuple[list[Finding], Decoding]:
    """The findings about bytes that are not in the encoding of a file, and a decoding that reads on.

    The decoding replaces such bytes if a run would refuse them.

    Args:
        share: the share of the file in all text.

    Raises:
        UserError: the encoding is unknown, or the file cannot be read.
    """
    bad = find_bad_lines(path, decoding)
    if not bad.count:
        return [], decoding
    if decoding.bad_bytes != "refuse":
        (note,) = bad.notes(path, decoding)
        return [Finding(note, share=bad.count / bad.lines)], decoding
    problem = f"{path}: bytes that are not {bad.encoding}; {bad.share_line()}"
    mend, places = bad_bytes_advice(decoding), tuple(bad.shown)
    finding = Finding(problem, mend, places, share=share, fails=True)
    return [finding], decoding._replace(bad_bytes="replace")


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that fail the run, then the others, each sorted by share."""
    return sorted(findings, key=lambda finding: (not finding.fails, -finding.share))


def findings_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """The findings as JSON: `would_fail`, and `findings`, the worst first."""
    return {
        "would_fail": any(finding.fails for finding in findings),
        "findings": [asdict(finding) for finding in worst_first(findings)],
    }


def findings_text(findings: Sequence[Finding]) -> str:
    """A numbered paragraph for each finding, the worst first."""
    if not findings:
        return "nothing to mend"
    lines = ["what to mend, the worst first:"]
    for number, finding in enumerate(worst_first(findings), start=1):
        kind = "the run would fail" if finding.fails else "warning"
        lines.append(f"{number}. {kind}: {finding.problem}")
        lines += [f"     {place}" for place in finding.places]
        lines += [f"   {finding.mend}"] if finding.mend else []
    return "\n".join(lines)
