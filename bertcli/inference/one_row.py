"""The one row that `bertcli attention` reads: of any model folder, with the texts of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import torch

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.examples.examples import Example
from bertcli.hf.folder import load_encoder_folder
from bertcli.hf.lengths import LongRows
from bertcli.hf.task_folder import LoadedTask, is_finetuned, load_task_folder
from bertcli.inference.attention_links import MOST_TOKENS
from bertcli.inference.decision import Decision, answer_names, decide, find_answer
from bertcli.inference.inputs import adapt_settings, read_inputs
from bertcli.inference.words import ReadRow, read_texts
from bertcli.model.encoder import Body
from bertcli.terminal import say
from bertcli.text.tokenizer import Tokenizer


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
    file: str | None,
    is_pair: bool,
    explained: bool,
    target: str | None,
    device: torch.device,
) -> OneRow:
    """The row of one text or pair as the model reads it; of a fine-tuned one, the row that gives its answer.

    Args:
        texts, file: as of `read_inputs`.
        is_pair: a fine-tuned model reads pairs, which its folder does not say.
        explained: the model must be a fine-tuned one.
        target: the answer of a fine-tuned model, by its name or number; None: its own.

    Raises:
        UserError: as `load_task_folder`, `read_inputs` and `decide`; more than one row.
    """
    if explained or is_finetuned(folder):
        return _of_task(load_task_folder(folder), texts, file, is_pair=is_pair, target=target, device=device)
    if is_pair:
        raise UserError("--pair: this model was not fine-tuned, and reads one text or two; leave it out")
    settings = TaskSettings(type="classification", text=["text_a", "text_b"] if len(texts) == 2 else "text")
    example = _only(texts, file, settings)
    model, tokenizer = load_encoder_folder(folder)
    length = min(model.architecture.usable_positions, MOST_TOKENS)
    read = _told(read_texts(tokenizer, example.texts, length), folder)
    return OneRow(model.to(device).body, tokenizer, example.texts, read=read, task=None)


def _of_task(
    loaded: LoadedTask,
    texts: Sequence[str],
    file: str | None,
    is_pair: bool,
    target: str | None,
    device: torch.device,
) -> OneRow:
    settings = adapt_settings(loaded.settings, is_pair=is_pair)
    settings = settings.model_copy(update={"max_length": min(settings.max_length, MOST_TOKENS)})
    task = replace(loaded, model=loaded.model.to(device), settings=settings)
    example = _only(texts, file, settings)
    number = None if target is None else find_answer(answer_names(task, example), target)
    decision = decide(task, example, number)
    read = _told(decision.read, loaded.folder)
    return OneRow(task.model.body, task.tokenizer, example.texts, read=read, task=(task, decision))


def _only(texts: Sequence[str], file: str | None, settings: TaskSettings) -> Example:
    examples = list(islice(read_inputs(texts, file, settings, report=say), 2))
    if len(examples) == 1:
        return examples[0]
    if not examples:
        raise UserError(f"{file}: holds no row")
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
