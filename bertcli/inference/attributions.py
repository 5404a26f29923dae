"""Integrated gradients (Sundararajan, Taly and Yan 2017): what each input adds to one number of a model."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bertcli.folders.task_folder import LoadedTask
from bertcli.inference.decision import Decision, decide
from bertcli.inference.predict import only_numbers
from bertcli.tasks.examples import Example

TOLERANCE = 0.01
"""Largest completeness error that is accepted, as a share of the sum of all absolute scores."""
MOST_STEPS = 1024
TOKENS_AT_ONCE = 1024
"""Tokens in one backward pass, whose memory grows with them."""


@dataclass(frozen=True)
class Integral:
    """The scores of T tokens along the straight path from a baseline to the input.

    Attributes:
        scores_T: the scores, float32 on the CPU; their sum is `value - baseline`, except for `error`.
        value: the function's value at the input.
        baseline: the function's value at the baseline.
        steps: points of the path at which the gradient was taken.
    """

    scores_T: Tensor
    value: float
    baseline: float
    steps: int

    @property
    def error(self) -> float:
        """The completeness error (section 3 of the paper): the sum of the scores minus what it should be."""
        return float(self.scores_T.sum()) - (self.value - self.baseline)

    @property
    def is_complete(self) -> bool:
        """True if the error is within `TOLERANCE`."""
        return abs(self.error) <= TOLERANCE * float(self.scores_T.abs().sum())


def integrate(
    function: Callable[[Tensor], Tensor], input_TE: Tensor, baseline_TE: Tensor, steps: int
) -> Integral:
    """The integrated gradients of a differentiable `function`, [B, T, E] -> [B], for each token.

    Gauss-Legendre quadrature is used: smooth functions need far fewer points than by a sum of equal steps.
    The number of points is doubled until the integral is complete, at most to `MOST_STEPS`.
    """
    with torch.no_grad():
        value, baseline = only_numbers(function(torch.stack([input_TE, baseline_TE]))).tolist()
    while True:
        gradient_TE = _mean_gradient(function, input_TE, baseline_TE, steps=steps)
        scores_T = (gradient_TE * (input_TE - baseline_TE)).sum(dim=-1).cpu()
        integral = Integral(scores_T, value, baseline, steps=steps)
        if integral.is_complete or 2 * steps > MOST_STEPS:
            return integral
        steps *= 2


def _mean_gradient(
    function: Callable[[Tensor], Tensor], input_TE: Tensor, baseline_TE: Tensor, steps: int
) -> Tensor:
    """The gradient's mean over the path, [T, E]."""
    points, weights = np.polynomial.legendre.leggauss(steps)
    shares_S = torch.from_numpy((points + 1) / 2).to(input_TE)  # from [-1, 1] to [0, 1]
    weights_S = torch.from_numpy(weights / 2).to(input_TE)
    rows = max(1, TOKENS_AT_ONCE // len(input_TE))
    total_TE = torch.zeros_like(input_TE)
    for shares_B, weights_B in zip(shares_S.split(rows), weights_S.split(rows), strict=True):
        path_BTE = torch.lerp(baseline_TE, input_TE, shares_B[:, None, None]).detach().requires_grad_()
        (gradient_BTE,) = torch.autograd.grad(function(path_BTE).sum(), path_BTE)
        total_TE += torch.einsum("b,bte->te", weights_B, gradient_BTE)
    return total_TE


STEPS = 32
"""Number of points of the path at first; enough for most rows of a fine-tuned model."""


@dataclass(frozen=True)
class Attributions:
    """What each word of a row adds to the output for an answer, against the same row without its words.

    Attributes:
        words: the words in the row, in order.
        scores: the score of each word, the sum over its tokens; positive for the answer, negative against it.
        answer: the answer, in words.
        value, baseline: the logit (or the value of a regression) for the row, and for the same row with a
            mask for every word.
        error: the sum of `scores` minus `value - baseline`; 0 for exact integrals.
        is_complete: whether the error is within `TOLERANCE`.
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
    vector is trained in every family; vectors of padding or of zeros are not.

    Args:
        steps: points of the path, more if the integral needs them.

    Raises:
        UserError: as `decide`.
    """
    return attribute(loaded, decide(loaded, example, target), steps)


def attribute(loaded: LoadedTask, decision: Decision, steps: int = STEPS) -> Attributions:
    """The attributions of an answer that is known already (see `attributions`)."""
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
    """A block in which the table gives these vectors, whatever the ids."""
    hook = table.register_forward_hook(lambda *_: vectors_BTE)
    try:
        yield
    finally:
        hook.remove()
