"""The labeled files of a fine-tuning run -> rows, labels, lengths, and what to mend there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertcli.checks.examples import LabeledCheck
from bertcli.checks.findings import Finding, worst_first
from bertcli.config.finetune import FinetuneConfig
from bertcli.errors import UserError
from bertcli.examples.files import find_labeled_file
from bertcli.report.formatting import short
from bertcli.report.options import SMALL

MOST_LABELS = 30
_LONGEST = 40


@dataclass(frozen=True)
class LabeledFigures:
    """What `bertcli check-data` says of the files.

    Attributes:
        figures: `examples.report.figures`.
        labels: the most frequent: the name, and for each split how many rows have it, and which share of the
            rows that is; empty for numbers.
        left_out: labels that are not listed.
    """

    figures: Mapping[str, Any]
    splits: Sequence[str]
    labels: Sequence[tuple[str, Sequence[tuple[int, float]]]]
    left_out: int
    findings: Sequence[Finding]


def labeled_figures(config: FinetuneConfig, folder: Path, asked: bool) -> LabeledFigures:
    """Read the files again.

    Args:
        folder: of the run's model, whose tokenizer measures the rows.
        asked: also large files.

    Raises:
        UserError: the files are gone, or large and nobody asked.
    """
    names = [name for name in (config.task.train, config.task.dev) if name is not None]
    size = sum(find_labeled_file(name).stat().st_size for name in names)
    if size > SMALL and not asked:
        raise UserError(f"the files have {size / 1e6:,.0f} MB; --check-data reads them again")
    check = LabeledCheck(config.model_copy(update={"model": str(folder)}))
    if not check.figures:
        raise UserError(worst_first(check.findings)[0].problem if check.findings else "no rows")
    splits = list(check.figures["rows"])
    counts = [check.figures["counts"][split] for split in splits] if "counts" in check.figures else []
    names_of_labels = list(dict.fromkeys(label for each in counts for label in each))
    totals = [max(1, sum(each.values())) for each in counts]
    labels = []
    for label in names_of_labels[:MOST_LABELS]:
        numbers = [each.get(label, 0) for each in counts]
        shares = [number / total for number, total in zip(numbers, totals, strict=True)]
        labels.append((short(label, _LONGEST), list(zip(numbers, shares, strict=True))))
    folders = {f"{find_labeled_file(name).parent}/" for name in names}
    findings = [_without(folders, each) for each in worst_first(check.findings)]
    left_out = len(names_of_labels) - len(labels)
    return LabeledFigures(check.figures, splits, labels, left_out=left_out, findings=findings)


def _without(folders: set[str], finding: Finding) -> Finding:
    """The finding, with the names of files alone."""
    problem, places = finding.problem, list(finding.places)
    for folder in folders:
        problem, places = problem.replace(folder, ""), [place.replace(folder, "") for place in places]
    return replace(finding, problem=problem, places=tuple(places))
