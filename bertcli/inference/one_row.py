"""The one row that `bertcli attention` reads: of any model folder, with the texts of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.examples.examples import Example
from bertcli.hf.folder import load_encoder_folder
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
    is_pair: bool,
    explained: bool,
    target: str | None,
    device: torch.device,
) -> OneRow:
    """The row of one text or pair as the model reads it; of a fine-tuned one, the row that gives its answer.

    Args:
        texts: of the command line; none, or `-`: standard input.
        is_pair: a fine-tuned model reads pairs, which its folder does not say.
        explained: the model must be a fine-tuned one.
        target: the answer of a fine-tuned model, by its name or number; None: its own.

    Raises:
        UserError: as `load_task_folder`, `read_inputs` and `decide`; more than one row.
    """
    if explained or is_finetuned(folder):
        return _of_task(load_task_folder(folder), texts, is_pair, target=target, device=device)
    if is_pair:
        raise UserError("--pair: this model was not fine-tuned, and reads one text or two; leave it out")
    columns = ["text_a", "text_b"] if len(texts) == 2 else "text"
    example = _only(texts, TaskSettings(type="classification", text=columns), "a text or a pair of texts")
    model, tokenizer = load_encoder_folder(folder)
    length = min(model.architecture.usable_positions, MOST_TOKENS)
    read = _told(read_texts(tokenizer, example.texts, length))
    return OneRow(model.to(device).body, tokenizer, example.texts, read, task=None)


def _of_task(
    loaded: LoadedTask, texts: Sequence[str], is_pair: bool, target: str | None, device: torch.device
) -> OneRow:
    settings = adapt_settings(loaded.settings, is_pair=is_pair)
    settings = settings.model_copy(update={"max_length": min(settings.max_length, MOST_TOKENS)})
    hint = "" if settings.type == "token-classification" else " (with --pair, a pair of texts)"
    example = _only(texts, settings, f"one text{hint}")
    task = LoadedTask(
        loaded.model.to(device), loaded.tokenizer, settings, labels=loaded.labels, report=loaded.report
    )
    number = None if target is None else find_answer(answer_names(task, example), target)
    decision = decide(task, example, number)
    read = _told(decision.read)
    return OneRow(task.model.body, task.tokenizer, example.texts, read, task=(task, decision))


def _only(texts: Sequence[str], settings: TaskSettings, expected: str) -> Example:
    examples = list(islice(read_inputs(texts, None, settings, report=say), 2))
    if len(examples) > 1:
        raise UserError(f"this model reads {expected}, and one row is shown at a time; found more texts")
    return examples[0]


def _told(read: ReadRow) -> ReadRow:
    if read.dropped:
        say(f"{read.dropped:,} tokens of the text are not in this row, which holds {read.row.length:,}")
    return read
