"""`verdict.json` of a run folder: what the run said at its end, for those who were not there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bertcli.errors import UserError
from bertcli.files import disk_errors
from bertcli.owned.mark import write_own


@dataclass(frozen=True)
class KeptVerdict:
    """
    Attributes:
        step: the last one of the run when it ended; a run that goes on later has other scores.
        lines: the verdict, then what else was said.
        baseline: metric -> the score of an answer that reads no text; empty for pretraining.
    """

    step: int
    lines: Sequence[str]
    baseline: Mapping[str, float] = field(default_factory=dict)


def write_verdict(path: Path, verdict: KeptVerdict) -> None:
    """Replace the verdict of a run. Raises `UserError`: a full disk, or a file that bertcli did not write."""
    with disk_errors(f"{path}: could not be written"):
        write_own(path, json.dumps(asdict(verdict), indent=1, ensure_ascii=False) + "\n")


def read_verdict(path: Path) -> KeptVerdict | None:
    """The verdict of a run; None: it has not ended yet. Raises `UserError` if the file is damaged."""
    if not path.exists():
        return None
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        verdict = KeptVerdict(**value)
        numbers = [verdict.step, *verdict.baseline.values()]
        if not all(isinstance(each, int | float) for each in numbers):
            raise TypeError("a number is missing")
        return KeptVerdict(verdict.step, list(map(str, verdict.lines)), dict(verdict.baseline))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(
            f"{path}: damaged ({error}); remove it, and finish the run again with --resume to have it back"
        ) from None
