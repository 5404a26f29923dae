"""One answer of a task model: the row that gave it, and the one number of the model that stands for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor

from bertcli.folders.task_folder import LoadedTask
from bertcli.inference.predict import runner_of
from bertcli.system.errors import UserError
from bertcli.tasks.examples import Example
from bertcli.tasks.row_words import ReadRow
from bertcli.tasks.supervised import build_task

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


def decide(loaded: LoadedTask, example: Example, target: int | None = None) -> Decision:
    """The model's answer to `example`, or another answer that `target` names.

    Args:
        target: the number of a label, of a choice, or of a word, whose tag is then the answer; None: what the
            model predicts; for tags, the tag of the word that is least likely to be outside of all entities.

    Raises `UserError` if there is no such answer, or no word to tag.
    """
    runner = runner_of(loaded, next(loaded.model.parameters()).device)
    task, names = runner.task, answer_names(loaded, example)
    if target is not None and target not in range(len(names)):
        raise UserError(f"{example.where}: there is no answer {target} to explain, but {len(names)}")
    items = task.encode([example], loaded.tokenizer)
    found = task.output(example, items, runner.logits(items), target)
    read = task.read(example, items[found.item], found.row, tokenizer=loaded.tokenizer)
    return Decision(found.answer, read, found.logit)


def answer_names(loaded: LoadedTask, example: Example) -> Sequence[str]:
    """The answers that `decide` can be asked for, in the order of their numbers: labels, choices or words.

    The result is empty if the model has one answer alone.
    """
    return build_task(loaded.settings, loaded.labels).answer_names(example)


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
