"""The one row that `bertcli attention` reads: of any model folder, with the texts of the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import torch

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.examples.examples import Example
from bertcli.hf.folder import load_encoder_folder
from bertcli.hf.lengths import LongRows
from bertcli.hf.task_folder import LoadedTask, folder_task, load_task_folder, refuse_vectors
from bertcli.inference.attention_links import MOST_TOKENS
from bertcli.inference.decision import Decision, answer_names, decide, find_answer
from bertcli.inference.inputs import adapt_settings
from bertcli.inference.words import ReadRow, read_texts
from bertcli.model.encoder import Body
from bertcli.terminal import say
from bertcli.text.tokenizer import Tokenizer

Read = Callable[[TaskSettings], Iterable[Example]]


@dataclass(frozen=True)
class OneRow:
    """A model's body and the row that it reads.

    Attributes:
        texts: as they were given.
        task: the model with its head, and its answer; None: it was not fine-tuned.
    """

    body: Body
    tokenizer: Tokenizer
    texts: tuple[str, ...]
    read: ReadRow
    task: tuple[LoadedTask, Decision] | None


def read_one(
    folder: Path,
    texts: Sequence[str],
    read: Read,
    is_pair: bool,
    explained: bool,
    target: str | None,
    device: torch.device,
) -> OneRow:
    """The row of one text or pair as the model reads it; of one that answers, the row that gives its answer.

    Args:
        texts: those that were given one by one.
        read: gives the row, and all further ones, of a task with these settings.
        is_pair: a fine-tuned model reads pairs, which its folder does not say.
        explained: the model must be a fine-tuned one that answers.
        target: the answer of a fine-tuned model, by its name or number; None: its own.

    Raises:
        UserError: as `load_task_folder`, `refuse_vectors`, `read` and `decide`; more than one row.
    """
    if explained or folder_task(folder) not in (None, "sentence-embedding"):
        loaded = load_task_folder(folder)
        refuse_vectors(loaded.settings.type, folder)
        return _of_task(loaded, texts, read, is_pair=is_pair, target=target, device=device)
    if is_pair:
        raise UserError("--pair: this model has no task, and reads one text or two; leave it out")
    settings = TaskSettings(type="classification", text=["text_a", "text_b"] if len(texts) == 2 else "text")
    example = _only(texts, read(settings), settings)
    model, tokenizer = load_encoder_folder(folder)
    length = min(model.architecture.usable_positions, MOST_TOKENS)
    row = _told(read_texts(tokenizer, example.texts, length), folder)
    return OneRow(model.to(device).body, tokenizer, example.texts, read=row, task=None)


def _of_task(
    loaded: LoadedTask,
    texts: Sequence[str],
    read: Read,
    is_pair: bool,
    target: str | None,
    device: torch.device,
) -> OneRow:
    settings = adapt_settings(loaded.settings, is_pair=is_pair)
    settings = settings.model_copy(update={"max_length": min(settings.max_length, MOST_TOKENS)})
    task = replace(loaded, model=loaded.model.to(device), settings=settings)
    example = _only(texts, read(settings), settings)
    number = None if target is None else find_answer(answer_names(task, example), target)
    decision = decide(task, example, number)
    row = _told(decision.read, loaded.folder)
    return OneRow(task.model.body, task.tokenizer, example.texts, read=row, task=(task, decision))


def _only(texts: Sequence[str], rows: Iterable[Example], settings: TaskSettings) -> Example:
    examples = list(islice(rows, 2))
    if len(examples) == 1:
        return examples[0]
    if not examples:
        raise UserError("there is no row to show")
    is_one = settings.type in ("classification", "regression") and len(settings.text_columns) == 1
    pair = "; for a pair, with a model that was fine-tuned on one text, add --pair" if is_one else ""
    raise UserError(f"one row is shown at a time, and there are more{pair if len(texts) == 2 else ''}")


def _told(read: ReadRow, folder: Path) -> ReadRow:
    if read.dropped:
        say(f"{read.dropped:,} tokens of the text are not in this row, which holds {read.row.length:,}")
    long_rows = LongRows(folder)
    long_rows.count([read.row.length])
    long_rows.tell()
    return read
