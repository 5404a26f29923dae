"""One answer of a task model, the one number that stands for it, and what each word of its row adds to it."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from bertcli.inference.predict import Answers, AsRead, Runner, only_numbers
from bertcli.system.errors import UserError
from bertcli.tasks.examples import Example
from bertcli.tasks.row_words import ReadRow

Made = TypeVar("Made")
Parts = Generator[int, None, Made]
"""A long computation in parts, which returns its result; it yields the number of tokens of the next part."""


def completed(parts: Parts[Made]) -> Made:
    """The result of a computation, all parts at once."""
    while True:
        try:
            next(parts)
        except StopIteration as end:
            return end.value


class Work:
    """A long computation in parts, each of which yields the number of its tokens before it is computed.

    `made`: the result; None: it is not complete.
    """

    def __init__(self, parts: Generator[int, None, Any]) -> None:
        self._parts, self.tokens, self.made = parts, 0, None

    def advance(self) -> None:
        """Compute the next part."""
        try:
            self.tokens = next(self._parts)
        except StopIteration as end:
            self.made = end.value


class InParts(Answers):
    """A `Work` -> None, after one more of its parts; other questions are answered between two parts."""

    together = False

    def encode(self, question: Work) -> AsRead:
        if not question.tokens:
            question.advance()
        return AsRead(question, question.tokens)

    def compute(self, several: Sequence[AsRead]) -> list[None]:
        return [each.content.advance() for each in several]


_SHOWN = 12
"""Number of answers that a message lists."""


@dataclass(frozen=True)
class Decision:
    """An answer, and where it comes from.

    Attributes:
        answer: the answer, in words.
        read: the row whose logits give the answer.
        logit: the model's output for B rows -> float [B] (`tasks.shown.Output`).
    """

    answer: str
    read: ReadRow
    logit: Callable[[Tensor], Tensor]


def decide(runner: Runner, example: Example, target: int | None = None) -> Decision:
    """The model's answer to `example`, or another answer that `target` names.

    Args:
        target: a number of `answer_names`, that of a label, of a choice, or of a word, whose tag is then the
            answer; None: what the model predicts; for tags, the tag of the word that is least likely to be
            outside of all entities.

    Raises `UserError` if there is no such answer, or no word to tag.
    """
    task, tokenizer = runner.task, runner.tokenizer
    names = task.answer_names(example)
    if target is not None and target not in range(len(names)):
        raise UserError(f"{example.where}: there is no answer {target} to explain, but {len(names)}")
    items = task.encode([example], tokenizer)
    found = task.output(example, items, runner.logits(items), target)
    read = task.read(example, items[found.item], found.row, tokenizer=tokenizer)
    return Decision(found.answer, read, found.logit)


def find_answer(names: Sequence[str], name: str) -> int:
    """The number of the answer that a user names by its text, or by its number from 0.

    Raises `UserError` if there is none, or several have this text.
    """
    if not names:
        raise UserError(f"--target {name}: this model has one answer alone; leave it out")
    same = [number for number, each in enumerate(names) if each == name]
    if len(same) > 1:
        raise UserError(
            f"--target {name}: {len(same)} have this text; give a number: {', '.join(map(str, same))}"
        )
    if same:
        return same[0]
    if name.isdecimal() and int(name) < len(names):
        return int(name)
    shown = ", ".join(f"{number} {each}" for number, each in enumerate(names[:_SHOWN]))
    more = f", ... {len(names) - 1}" if len(names) > _SHOWN else ""
    raise UserError(f"--target {name}: give one of these, by its number or its text: {shown}{more}")


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
    """The integrated gradients (Sundararajan, Taly and Yan 2017) of a differentiable `function`,
    [B, T, E] -> [B], for each token.

    Gauss-Legendre quadrature is used: smooth functions need far fewer points than by a sum of equal steps.
    The number of points is doubled until the integral is complete, at most to `MOST_STEPS`.
    """
    return completed(_integral(function, input_TE, baseline_TE, steps=steps))


def _integral(
    function: Callable[[Tensor], Tensor], input_TE: Tensor, baseline_TE: Tensor, steps: int
) -> Parts[Integral]:
    with torch.no_grad():
        value, baseline = only_numbers(function(torch.stack([input_TE, baseline_TE]))).tolist()
    while True:
        gradient_TE = yield from _mean_gradient(function, input_TE, baseline_TE, steps=steps)
        scores_T = (gradient_TE * (input_TE - baseline_TE)).sum(dim=-1).cpu()
        integral = Integral(scores_T, value, baseline, steps=steps)
        if integral.is_complete or 2 * steps > MOST_STEPS:
            return integral
        steps *= 2


def _mean_gradient(
    function: Callable[[Tensor], Tensor], input_TE: Tensor, baseline_TE: Tensor, steps: int
) -> Parts[Tensor]:
    """The gradient's mean over the path, [T, E]."""
    points, weights = np.polynomial.legendre.leggauss(steps)
    shares_S = torch.from_numpy((points + 1) / 2).to(input_TE)  # from [-1, 1] to [0, 1]
    weights_S = torch.from_numpy(weights / 2).to(input_TE)
    rows = max(1, TOKENS_AT_ONCE // len(input_TE))
    total_TE = torch.zeros_like(input_TE)
    for shares_B, weights_B in zip(shares_S.split(rows), weights_S.split(rows), strict=True):
        yield len(shares_B) * len(input_TE)
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


def attribute(runner: Runner, decision: Decision, steps: int = STEPS) -> Attributions:
    """The attributions of a model's answer.

    The path goes from the vector of the mask token to the vector of each token, before positions and segments
    are added. Special tokens stay as they are, and have no score. A mask stands for an unknown word, and its
    vector is trained in every family; vectors of padding or of zeros are not.

    `steps`: points of the path, more if the integral needs them.
    """
    return completed(attribute_in_parts(runner, decision, steps))


def attribute_in_parts(runner: Runner, decision: Decision, steps: int = STEPS) -> Parts[Attributions]:
    """The computation of `attribute`; a part is a pass forward and backward of about `TOKENS_AT_ONCE`."""
    model: Any = runner.model.eval()
    row, words, table = decision.read.row, decision.read.words, model.body.embeddings.word
    device = table.weight.device
    ids_T = torch.tensor(list(row.ids), device=device)
    segments_T = (torch.arange(row.length) >= row.second_starts).long().to(device)
    masked_T = ids_T.clone()
    masked_T[[place for word in words for place in word.tokens]] = runner.tokenizer.mask_id

    def logit(vectors_BTE: Tensor) -> Tensor:
        rows = len(vectors_BTE)
        with table.register_forward_hook(lambda *_: vectors_BTE):  # these vectors, whatever the ids
            return decision.logit(model(ids_T.expand(rows, -1), segments_T.expand(rows, -1))).float()

    with torch.no_grad():
        input_TE, baseline_TE = table(ids_T), table(masked_T)
    integral = yield from _integral(logit, input_TE, baseline_TE, steps=steps)
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
