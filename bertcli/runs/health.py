"""Reference lines for a run's losses, and warnings when a run is sick.

The field's commonest worries have numbers: what the first loss should be, where a model that learns nothing
stays, what chance gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertcli.engine.step_report import StepReport
from bertcli.evaluation.evaluate import Scores
from bertcli.runs.pretraining_verdict import MARGIN
from bertcli.tasks.reference import Reference

_FIRST_LOSS_TOLERANCE = 0.5
"""Nats; a fresh model lies within 0.05 of what is expected."""
_PATIENCE = 0.3
"""Share of the run after which a plateau is worth a warning."""


@dataclass(frozen=True)
class Health:
    """What the losses of a run are compared with.

    Attributes:
        references: of each term.
        steps: of the run.
        short_steps: on rows of `short_length` tokens, after which the positions beyond are trained.
    """

    references: Sequence[Reference]
    steps: int
    short_steps: int = 0
    short_length: int = 0

    def lines(self) -> list[str]:
        """What to know before the first step."""
        first = [f"{each.term} {each.first_loss:.3f}" for each in self.references if each.first_loss]
        expected = [f"expected first loss: {' + '.join(first)}"] if first else []
        return expected + [each.line for each in self.references]

    def heldout_note(self, step: int) -> str:
        """What to know of held-out losses while rows are short; empty after that."""
        if step > self.short_steps or not self.short_steps:
            return ""
        return f" (positions past {self.short_length} are trained after step {self.short_steps:,})"

    def first_step_warnings(self, report: StepReport) -> list[str]:
        """A line for each term whose first loss is not that of a fresh model."""
        return [
            f"warning: the first {each.term} loss is {report.losses[each.term]:.3f}, expected "
            f"{each.first_loss:.3f}: the model did not start fresh, or its vocabulary is not the corpus's"
            for each in self.references
            if each.first_loss is not None
            and not report.skipped
            and abs(report.losses[each.term] - each.first_loss) > _FIRST_LOSS_TOLERANCE
        ]

    def plateau_warnings(self, scores: Scores, step: int) -> list[str]:
        """A line for each term of words that is still where word frequencies alone lead."""
        if step < _PATIENCE * self.steps or step <= self.short_steps:
            return []
        return [
            f"warning: after {step} of {self.steps} steps the held-out {each.term} loss "
            f"({scores.losses[each.term]:.3f}) is still the unigram entropy of the corpus "
            f"({each.chance_loss:.3f}): only word frequencies were learned. Longer training, another "
            "training.learning_rate, a longer warm-up or a smaller model gets past it; check for duplicate "
            "lines as well"
            for each in self.references
            if each.predicts_words and abs(scores.losses[each.term] - each.chance_loss) <= MARGIN
        ]
