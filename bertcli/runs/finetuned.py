"""What a fine-tuning run ends with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bertcli.evaluation.evaluate import Scores
from bertcli.evaluation.task_verdict import Verdict


@dataclass(frozen=True)
class Finetuned:
    """A finished run: its model folder, the scores of that model on the dev data, what they are worth (both
    None: no dev data), and the metric that picked it."""

    model: Path
    scores: Scores | None
    verdict: Verdict | None
    metric: str
