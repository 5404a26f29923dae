"""Reference lines for a run's losses, and warnings when a run is sick.

The field's commonest worries have numbers: what the first loss should be, where an MLM that learns nothing
gets stuck (the unigram entropy of the corpus: it predicts word frequencies and no more), what NSP scores
by chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from bertcli.evaluation.evaluate import Scores
from bertcli.engine.step_report import StepReport
from bertcli.runs.pretraining_verdict import MARGIN

NSP_CHANCE_LOSS = math.log(2)
_FIRST_LOSS_TOLERANCE = 0.5  # nats; a fresh model lies within 0.05 of what is expected
_PATIENCE = 0.3  # share of the run after which a plateau is worth a warning


@dataclass(frozen=True)
class References:
    """Losses in nats; `first_mlm_loss` is None where the model starts from trained weights."""

    first_mlm_loss: float | None
    unigram_entropy: float
    with_nsp: bool
    short_steps: int = 0
    """Steps on rows of `short_length` tokens, after which the positions beyond are trained."""
    short_length: int = 0

    def lines(self) -> list[str]:
        lines = []
        if self.first_mlm_loss is not None:
            nsp = f" + nsp {NSP_CHANCE_LOSS:.3f}" if self.with_nsp else ""
            lines.append(f"expected first loss: mlm {self.first_mlm_loss:.3f}{nsp}")
        lines.append(
            f"unigram entropy of the corpus: {self.unigram_entropy:.3f} (an MLM stuck here has learned word "
            "frequencies and nothing else)"
        )
        if self.with_nsp:
            lines.append(f"nsp by chance: loss {NSP_CHANCE_LOSS:.3f}, accuracy 50%; label 0 is IsNext")
        return lines

    def heldout_note(self, step: int) -> str:
        """What to know of held-out losses while rows are short; empty afterward."""
        if step > self.short_steps or not self.short_steps:
            return ""
        return f" (positions past {self.short_length} are trained after step {self.short_steps:,})"

    def first_step_warning(self, report: StepReport) -> str | None:
        if self.first_mlm_loss is None or report.skipped:
            return None
        if abs(report.losses["mlm"] - self.first_mlm_loss) <= _FIRST_LOSS_TOLERANCE:
            return None
        return (
            f"warning: the first mlm loss is {report.losses['mlm']:.3f}, expected {self.first_mlm_loss:.3f}: "
            "the model did not start fresh, or its vocabulary is not the corpus's"
        )

    def plateau_warning(self, scores: Scores, step: int, steps: int) -> str | None:
        is_early = step < _PATIENCE * steps or step <= self.short_steps
        if is_early or abs(scores.losses["mlm"] - self.unigram_entropy) > MARGIN:
            return None
        return (
            f"warning: after {step} of {steps} steps the held-out mlm loss ({scores.losses['mlm']:.3f}) is "
            f"still the unigram entropy of the corpus ({self.unigram_entropy:.3f}): only word frequencies "
            "were learned. Longer training, another training.learning_rate, a longer warm-up or a smaller "
            "model gets past it; check for duplicate lines as well"
        )
