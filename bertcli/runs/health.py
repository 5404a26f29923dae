"""Reference values for a run's losses, and warnings if a run does not learn.

They are the expected first loss, the unigram entropy, where a model that learns nothing stays, and chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertcli.engine.step_report import StepReport
from bertcli.evaluation.evaluate import Scores
from bertcli.runs.pretraining_verdict import MARGIN
from bertcli.tasks.reference import Reference

_FIRST_LOSS_TOLERANCE = 0.5
"""Nats; a fresh model is within 0.05 of the expected value."""
_PATIENCE = 0.3
"""Share of the run after which a plateau causes a warning."""


@dataclass(frozen=True)
class Health:
    """The values with which the losses of a run are compared.

    Attributes:
        references: of each term; without any, there are no warnings.
        steps: of the run.
        short_steps: on rows of `short_length` tokens; later positions are trained only after them.
    """

    references: Sequence[Reference] = ()
    steps: int = 0
    short_steps: int = 0
    short_length: int = 0

    def lines(self) -> list[str]:
        """Lines to print before the first step."""
        first = [f"{each.term} {each.first_loss:.3f}" for each in self.references if each.first_loss]
        expected = [f"expected first loss: {' + '.join(first)}"] if first else []
        return expected + [each.line for each in self.references]

    def heldout_note(self, step: int) -> str:
        """A note on held-out losses while rows are short; empty after that."""
        if step > self.short_steps or not self.short_steps:
            return ""
        return f" (positions past {self.short_length} are trained after step {self.short_steps:,})"

    def first_step_warnings(self, report: StepReport) -> list[str]:
        """A warning for each term whose first loss is not that of a fresh model."""
        return [
            f"warning: the first {each.term} loss is {report.losses[each.term]:.3f}, expected "
            f"{each.first_loss:.3f}: the model did not start fresh, or its vocabulary is not the corpus's"
            for each in self.references
            if each.first_loss is not None
            and not report.skipped
            and abs(report.losses[each.term] - each.first_loss) > _FIRST_LOSS_TOLERANCE
        ]

    def plateau_warnings(self, scores: Scores, step: int) -> list[str]:
        """A warning for each term that predicts words and is still at the unigram entropy."""
        if step < _PATIENCE * self.steps or step <= self.short_steps:
            return []
        return [
            f"warning: after {step} of {self.steps} steps the held-out {each.term} loss "
            f"({scores.losses[each.term]:.3f}) is still the unigram entropy of the corpus "
            f"({each.chance_loss:.3f}): only word frequencies were learned. Try longer training, another "
            "training.learning_rate, a longer warm-up or a smaller model, and check the corpus for duplicate "
            "lines"
            for each in self.references
            if each.predicts_words and abs(scores.losses[each.term] - each.chance_loss) <= MARGIN
        ]
