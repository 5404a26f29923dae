"""One answer of a task model: the row that gave it, and the one number of the model that stands for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from torch import Tensor

from bertcli.folders.task_folder import LoadedTask
from bertcli.inference.predict import Runner, default_batch_size
from bertcli.inference.words import ReadRow, read_item
from bertcli.system.errors import UserError
from bertcli.tasks.examples import ChoiceExample, Example, TaggedExample
from bertcli.tasks.question_answering import NOWHERE, Answered, Passage, QuestionAnswering
from bertcli.tasks.regression import Regression
from bertcli.tasks.supervised import Item, build_task, most_context
from bertcli.tasks.token_classification import OUTSIDE

_SHOWN = 12
"""Number of answers that a message lists."""


@dataclass(frozen=True)
class Decision:
    """An answer, and where it comes from.

    Attributes:
        answer: the answer, in words.
        read: the row whose logits give the answer.
        logit: the model's output for B rows -> float [B], the logit of this answer: a label, a word's tag or
            a choice. A value stands for itself, and a span has the sum of its start and end logits.
    """

    answer: str
    read: ReadRow
    logit: Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class _Found:
    """An answer, its logit, and the numbers of its item and of the row in that item."""

    answer: str
    logit: Callable[[Tensor], Tensor]
    item: int = 0
    row: int = 0


def decide(loaded: LoadedTask, example: Example, target: int | None = None) -> Decision:
    """The model's answer to `example`, or another answer that `target` names.

    Args:
        target: the number of a label, of a choice, or of a word, whose tag is then the answer; None: what the
            model predicts; for tags, the tag of the word that is least likely to be outside of all entities.

    Raises `UserError` if there is no such answer, or no word to tag.
    """
    names = answer_names(loaded, example)
    if target is not None and target not in range(len(names)):
        raise UserError(f"{example.where}: there is no answer {target} to explain, but {len(names)}")
    task, device = build_task(loaded.settings, loaded.labels), next(loaded.model.parameters()).device
    runner = Runner(
        model=loaded.model.eval(),
        task=task,
        pad_id=loaded.tokenizer.pad_id,
        device=device,
        precision="fp32",
        batch_size=default_batch_size(device),
    )
    items = task.encode([example], loaded.tokenizer)
    logits = runner.logits(items)
    if isinstance(example, TaggedExample):
        found = _tag(example, items, logits, labels=loaded.labels, target=target)
    elif isinstance(task, QuestionAnswering):
        found = _span(task, task.predict(cast(Any, example), items, logits), items, logits=logits)
    elif isinstance(task, Regression):
        value = task.predict(cast(Any, example), items, logits).value
        found = _Found(f"{value:.4f}", lambda logits_B1: logits_B1[:, 0])
    else:
        best = int(logits[0].argmax()) if target is None else target
        row, output = (best, 0) if isinstance(example, ChoiceExample) else (0, best)
        found = _Found(names[best], lambda logits_BC: logits_BC[:, output], row=row)
    read = read_item(items[found.item], found.row, example, tokenizer=loaded.tokenizer)
    return Decision(found.answer, read, found.logit)


def answer_names(loaded: LoadedTask, example: Example) -> Sequence[str]:
    """The answers that `decide` can be asked for, in the order of their numbers: labels, choices or words.

    The result is empty if the model has one answer alone.
    """
    if isinstance(example, TaggedExample):
        return example.words
    return example.choices if isinstance(example, ChoiceExample) else loaded.labels


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


def _tag(
    example: TaggedExample,
    items: Sequence[Item],
    logits: Sequence[Tensor],
    labels: tuple[str, ...],
    target: int | None,
) -> _Found:
    """The tag of a word, at its first piece, in the window that predicts it."""
    places = {
        word: (number, position)
        for number, item in enumerate(items)
        for word, position in zip(item.layout.words, item.layout.positions, strict=True)
    }
    if not places or (target is not None and target not in places):
        raise UserError(
            f"{example.where}: {'the word' if places else 'the text'} has no token to be tagged by"
        )
    shares = {word: logits[number][position].softmax(dim=-1) for word, (number, position) in places.items()}
    outside = labels.index(OUTSIDE) if OUTSIDE in labels else None
    inside = {word: 1.0 if outside is None else 1 - float(p[outside]) for word, p in shares.items()}
    word = max(inside, key=inside.__getitem__) if target is None else target
    item, position = places[word]
    tag = int(shares[word].argmax())
    answer = f"{labels[tag]} ({example.words[word]})"
    return _Found(answer, lambda logits_BTC: logits_BTC[:, position, tag], item=item)


def _span(
    task: QuestionAnswering, answered: Answered, items: Sequence[Item], logits: Sequence[Tensor]
) -> _Found:
    """The first and the last token of an answer, in the window that has most context for it."""
    passages: list[Passage] = [item.layout for item in items]
    if answered.start is None:
        sums = [float(logits_T2[list(NOWHERE), [0, 1]].sum()) for logits_T2 in logits]
        item, (first, last) = sums.index(min(sums)), NOWHERE
    else:
        best = task.best(passages, logits)[0]
        item = int(most_context([passage.window for passage in passages])[best.first])
        shift = passages[item].first - passages[item].window.start
        first, last = best.first + shift, best.last + shift
    return _Found(
        answered.answer or "no answer in the text",
        lambda logits_BT2: logits_BT2[:, first, 0] + logits_BT2[:, last, 1],
        item=item,
    )
