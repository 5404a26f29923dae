"""The verdict on a pretraining run: whether it learned more than word frequencies, and what to change."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertcli.config.schema import PretrainConfig
from bertcli.config.section import mean_of
from bertcli.model.architecture import Architecture
from bertcli.objectives.base import Reference
from bertcli.training.evaluate import Scores
from bertcli.training.metrics_log import term_key
from bertcli.training.recipe import ROWS_TO_LOOK_AROUND, peak_rate
from bertcli.training.step_report import StepReport

MARGIN = 0.15
"""Distance in nats from the unigram entropy; a model within it learned only word frequencies."""
RTD_MARGIN = 0.05
"""Share of the loss of a constant answer; a smaller gain counts as none."""
PAIR_MARGIN = 0.03
"""Share of the pairs; a model less than this above chance learned nothing from pairs."""
WORSE = 0.02
"""Distance in nats above the lowest held-out loss of the run; a model beyond it became worse."""


def verdict(
    scores: Scores | None,
    references: Sequence[Reference],
    config: PretrainConfig,
    sizes: Architecture,
    rows: Sequence[Mapping[str, Any]] = (),
) -> str:
    """One paragraph for the log and the model card.

    Args:
        scores: the scores of the final model on held-out text; None: nothing was held out.
        references: the references of the task's terms; the verdict is on the one that predicts words.
        config: the config with every auto decided.
        sizes: the sizes of the model.
        rows: the rows of the run's evaluations; an earlier one may have been better.
    """
    if scores is None:
        return "verdict: none, because nothing was held out (corpus.heldout_fraction)"
    if "rtd" in scores.losses:
        return _on_replaced_tokens(scores, config, sizes) + _on_worse(scores.losses["rtd"], "rtd", rows)
    words = next(each for each in references if each.predicts_words)
    said = _on_words(scores, words, config, sizes=sizes)
    pairs = "".join(_on_pairs(scores, each) for each in references if not each.predicts_words)
    return said + pairs + _on_worse(scores.losses[words.term], words.term, rows)


def _on_pairs(scores: Scores, pairs: Reference) -> str:
    """A sentence on the pairs; empty if their accuracy is better than chance, or not measured."""
    accuracy, chance = scores.accuracies.get(pairs.term), pairs.chance_accuracy
    if accuracy is None or chance is None or accuracy - chance >= PAIR_MARGIN:
        return ""
    return (
        f". Held-out {pairs.term} is at chance (accuracy {accuracy:.1%}, by chance {chance:.0%}; loss "
        f"{scores.losses[pairs.term]:.3f}, {pairs.chance_loss:.3f}): it cannot tell which text follows. "
        "To change: more training.steps, or data.objective: mlm if pairs are not needed"
    )


def _on_worse(loss: float, term: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A sentence on an earlier, better evaluation; empty if none was clearly better than the last."""
    key = term_key(term, "loss")
    known = [row for row in rows if isinstance(row.get(key), int | float)]
    best = min(known, key=lambda row: row[key], default=None)
    if best is None or loss - best[key] <= WORSE:
        return ""
    return (
        f". The run became worse: held-out {term} was {best[key]:.3f} at step {best['step']:,}, and is "
        f"{loss:.3f} now. checkpoint.keep_best: true keeps the best model; fewer "
        "training.steps, more text or model.dropout avoid it"
    )


def _on_words(scores: Scores, words: Reference, config: PretrainConfig, sizes: Architecture) -> str:
    loss, unigram_entropy = scores.losses[words.term], words.chance_loss
    gain = unigram_entropy - loss
    if gain > MARGIN:
        return (
            f"verdict: held-out {words.term} {loss:.3f} is {gain:.2f} nats better than word frequencies "
            f"alone ({unigram_entropy:.3f}): each masked token is {math.exp(gain):.1f} times as likely to be "
            "found"
        )
    what = "no better than" if gain > -MARGIN else f"{-gain:.2f} nats worse than"
    if not math.isfinite(loss):
        what = "not a number, far worse than"
    advice = (
        "; ".join(_advice(config, sizes)) or "take more text, more training.steps or a smaller model.preset"
    )
    return (
        f"verdict: held-out {words.term} {loss:.3f} is {what} word frequencies alone "
        f"({unigram_entropy:.3f}): the model learned nothing from context. To change: {advice}"
    )


def _on_replaced_tokens(scores: Scores, config: PretrainConfig, sizes: Architecture) -> str:
    """The verdict on rtd, compared with an answer that knows only how many tokens are replaced."""
    share, found = scores.metrics["rtd_replaced"], scores.metrics["rtd_found"]
    loss, accuracy = scores.losses["rtd"], scores.accuracies["rtd"]
    constant = -share * math.log(share) - (1 - share) * math.log(1 - share) if 0 < share < 1 else 0.0
    figures = (
        f"held-out rtd {loss:.3f}: {found:.1%} of the replaced tokens are found, and {accuracy:.1%} of all "
        f"tokens are told right (all called original: {1 - share:.1%}, loss {constant:.3f})"
    )
    if loss < (1 - RTD_MARGIN) * constant:
        return f"verdict: {figures}"
    advice = "; ".join(_advice(config, sizes)) or "take more text or more training.steps"
    return f"verdict: {figures}: the model learned nothing from context. To change: {advice}"


def _advice(config: PretrainConfig, sizes: Architecture) -> Iterator[str]:
    training, data, fresh = config.training, config.data, config.model.init_from is None
    usual = peak_rate(sizes.layers, sizes.hidden, fresh)
    if not usual / 5 <= training.learning_rate <= usual * 2:
        yield f"training.learning_rate is {training.learning_rate:g}, auto takes {usual:g}"
    rows = (training.steps or 0) * mean_of(training.batch_size)
    if fresh and rows < ROWS_TO_LOOK_AROUND:
        yield (
            f"training.steps: {rows:,.0f} rows were read, but a model starts to use context after 20,000 to "
            f"{ROWS_TO_LOOK_AROUND:,}"
        )
    if fresh and not data.short_steps and data.max_length >= 2 * data.short_length:
        yield "data.short_steps is 0; auto starts with short rows: a model learns to use context sooner"


_FIRST_LOSS_TOLERANCE = 0.5
"""Tolerated distance of the first loss in nats; a fresh model is within 0.05 of the expected value."""
_PATIENCE = 0.3
"""Share of the run's steps after which a plateau causes a warning."""


@dataclass(frozen=True)
class Health:
    """The values with which the losses of a run are compared.

    Attributes:
        references: the references of the terms; if there are none, there are no warnings.
        steps: number of steps of the run.
        short_steps: number of steps on rows of `short_length` tokens; later positions are trained after them.
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
