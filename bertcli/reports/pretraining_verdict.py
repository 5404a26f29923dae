"""The verdict on a pretraining run: whether it learned more than word frequencies, and what to change."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertcli.config.run import PretrainRecipe
from bertcli.families.registry import fresh_of
from bertcli.folders.config_file import learns_anew
from bertcli.model.architecture import Architecture
from bertcli.objectives.base import Reference
from bertcli.objectives.learner import MARGIN, learner_of
from bertcli.training.metrics_log import term_key
from bertcli.training.recipe import PLATEAU_STEPS, TRAINED, peak_rate
from bertcli.training.scores import Scores, StepReport

PAIR_MARGIN = 0.03
"""Share of the pairs; a model less than this above chance learned nothing from pairs."""
WORSE = 0.02
"""Distance in nats above the lowest held-out loss of the run; a model beyond it became worse."""


def verdict(
    scores: Scores | None,
    references: Sequence[Reference],
    config: PretrainRecipe,
    sizes: Architecture,
    rows: Sequence[Mapping[str, Any]] = (),
) -> str:
    """One paragraph for the log and the model card.

    Args:
        scores: the scores of the final model on held-out text; None: nothing was held out.
        references: the references of the task's terms.
        config: the config with every auto decided.
        sizes: the sizes of the model.
        rows: the rows of the run's evaluations; an earlier one may have been better.
    """
    if scores is None:
        return "verdict: none, because nothing was held out (corpus.heldout_fraction)"
    learner, known = learner_of(config.data.objective), {each.term: each for each in references}
    term, pairs = learner.term, known.get(learner.objective.pairs.term)
    loss, accuracy = scores.losses[term], scores.accuracies[term]
    said, learned = learner.judge(known[term], loss, accuracy, metrics=scores.metrics)
    if not learned:
        advice = "; ".join(_advice(config, sizes)) or learner.advice
        said += f": the model learned nothing from context. To change: {advice}"
    if pairs is not None:
        said += _on_pairs(scores, pairs)
    return f"verdict: {said}{_on_worse(loss, term, rows)}"


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


def _advice(config: PretrainRecipe, sizes: Architecture) -> Iterator[str]:
    training, anew = config.training, learns_anew(config.model.init_from)
    factor = fresh_of(sizes.family).rate if anew else TRAINED
    usual = peak_rate(sizes.layers, sizes.hidden, training.optimizer, factor=factor)
    if not usual / 5 <= training.learning_rate <= usual * 2:
        yield f"training.learning_rate is {training.learning_rate:g}, auto takes {usual:g}"
    if anew and (training.steps or 0) < PLATEAU_STEPS:
        yield (
            f"training.steps is {training.steps:,}, and a new model takes up to {PLATEAU_STEPS} until "
            "it uses context"
        )


_FIRST_LOSS_TOLERANCE = 0.5
"""Tolerated distance of the first loss in nats; a fresh model is within 0.25 of the expected value."""
_PATIENCE = 0.3
"""Share of the run's steps after which a plateau causes a warning."""


@dataclass(frozen=True)
class Health:
    """The values with which the losses of a run are compared.

    Attributes:
        references: the references of the terms; if there are none, there are no warnings.
        steps: number of steps of the run.
    """

    references: Sequence[Reference] = ()
    steps: int = 0

    def lines(self) -> list[str]:
        """Lines to print before the first step."""
        first = [f"{each.term} {each.first_loss:.3f}" for each in self.references if each.first_loss]
        expected = [f"expected first loss: {' + '.join(first)}"] if first else []
        return expected + [each.line for each in self.references]

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
        if step < _PATIENCE * self.steps:
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
