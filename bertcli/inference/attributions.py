"""Which words decided an answer of a task model: integrated gradients from a row of masks to its words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from bertcli.examples.examples import Example
from bertcli.hf.task_folder import LoadedTask
from bertcli.inference.decision import Decision, decide
from bertcli.inference.integrated_gradients import integrate

STEPS = 32
"""Points of the path at first; enough for most rows of a fine-tuned model."""


@dataclass(frozen=True)
class Attributions:
    """What each word of a row adds to the output for an answer, against the same row without its words.

    Attributes:
        words: those in the row, in order.
        scores: one a word, the sum over its tokens; positive for the answer, negative against it.
        answer: in words.
        value, baseline: the logit (of a regression: the value) of the row, and of the same row with a mask
            for every word.
        error: the sum of `scores` minus `value - baseline`; 0 for exact integrals.
        is_complete: whether the error is within `integrated_gradients.TOLERANCE`.
        steps: points of the path at which the gradient was taken.
    """

    words: list[str]
    scores: list[float]
    answer: str
    value: float
    baseline: float
    error: float
    is_complete: bool
    steps: int

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return asdict(self)


def attributions(
    loaded: LoadedTask, example: Example, target: int | None = None, steps: int = STEPS
) -> Attributions:
    """The attributions of a model's answer to `example`, or of the answer `target` (`decision.decide`).

    The path goes from the vector of the mask token to the vector of each token, before positions and segments
    are added. Special tokens stay as they are, and have no score. A mask stands for an unknown word, and its
    vector is trained in every family; those of padding and of zeros are not.

    Args:
        steps: points of the path, more if the integral needs them.

    Raises:
        UserError: as `decide`.
    """
    return attribute(loaded, decide(loaded, example, target), steps)


def attribute(loaded: LoadedTask, decision: Decision, steps: int = STEPS) -> Attributions:
    """As `attributions`, of an answer that is known already."""
    model, row, words = loaded.model.eval(), decision.read.row, decision.read.words
    table = model.body.embeddings.word
    device = table.weight.device
    ids_T = torch.tensor(list(row.ids), device=device)
    segments_T = (torch.arange(row.length) >= row.second_starts).long().to(device)
    masked_T = ids_T.clone()
    masked_T[[place for word in words for place in word.tokens]] = loaded.tokenizer.mask_id

    def logit(vectors_BTE: Tensor) -> Tensor:
        rows = len(vectors_BTE)
        with _instead(table, vectors_BTE):
            return decision.logit(model(ids_T.expand(rows, -1), segments_T.expand(rows, -1))).float()

    with torch.no_grad():
        input_TE, baseline_TE = table(ids_T), table(masked_T)
    integral = integrate(logit, input_TE, baseline_TE, steps=steps)
    return Attributions(
        [word.text for word in words],
        scores=[float(integral.scores_T[list(word.tokens)].sum()) for word in words],
        answer=decision.answer,
        value=integral.value,
        baseline=integral.baseline,
        error=integral.error,
        is_complete=integral.is_complete,
        steps=integral.steps,
    )


@contextmanager
def _instead(table: nn.Embedding, vectors_BTE: Tensor) -> Iterator[None]:
    """Inside, the table gives these vectors, whatever the ids."""
    hook = table.register_forward_hook(lambda *_: vectors_BTE)
    try:
        yield
    finally:
        hook.remove()
