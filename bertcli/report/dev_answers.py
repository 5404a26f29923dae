"""The dev data of a fine-tuning run -> the answers of its model, computed when the report is made."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertcli.config.finetune import FinetuneConfig
from bertcli.errors import UserError
from bertcli.examples.examples import Example
from bertcli.examples.files import find_labeled_file, read_examples
from bertcli.examples.labels import check_labels, spelled_as
from bertcli.examples.split import split_dev
from bertcli.hf.task_folder import LoadedTask, load_task_folder
from bertcli.inference.buffers import default_batch_size
from bertcli.inference.examples import Runner
from bertcli.tasks.registry import build_task
from bertcli.tasks.supervised import LabeledTask, Prediction

MOST_ROWS = 5_000
MOST_SECONDS = 60.0
"""A report is not a second evaluation: after this time the rows answered so far must do."""
_AT_ONCE = 64
"""Examples between two looks at the clock."""


@dataclass(frozen=True)
class DevAnswers:
    """Rows of the dev data with the answers of a model, in the order of the file.

    Attributes:
        rows: of the dev data; more than `examples` where there was no time for all of them.
        metrics: of these rows.
    """

    loaded: LoadedTask
    task: LabeledTask
    examples: Sequence[Any]
    predictions: Sequence[Prediction]
    rows: int
    metrics: Mapping[str, Any]

    @property
    def wrong(self) -> list[int]:
        """The places of the rows with a wrong answer."""
        pairs = zip(self.examples, self.predictions, strict=True)
        return [i for i, (example, answer) in enumerate(pairs) if not self.task.is_right(example, answer)]


def answer_dev(config: FinetuneConfig, folder: Path, device: torch.device) -> DevAnswers | None:
    """Answer the dev data, or a random part of it that is always the same; None: there are none.

    Raises:
        UserError: the model or the data are gone, or cannot be read.
    """
    examples = dev_examples(config)
    if not examples:
        return None
    loaded = load_task_folder(folder)
    examples = spelled_as(examples, loaded.labels)
    check_labels(examples, loaded.labels, loaded.settings)
    task = build_task(loaded.settings, loaded.labels)
    runner = Runner(
        model=loaded.model.to(device).eval(),
        task=task,
        pad_id=loaded.tokenizer.pad_id,
        device=device,
        precision="fp32",
        batch_size=default_batch_size(device),
    )
    order = np.random.default_rng(0).permutation(len(examples))[:MOST_ROWS].tolist()
    start, answers = time.monotonic(), dict[int, Prediction]()
    for first in range(0, len(order), _AT_ONCE):
        some = order[first : first + _AT_ONCE]
        rows = [examples[i] for i in some]
        answers.update(zip(some, runner.predict(rows, task.encode(rows, loaded.tokenizer)), strict=True))
        if time.monotonic() - start > MOST_SECONDS:
            break
    chosen = sorted(answers)
    answered, predictions = [examples[i] for i in chosen], task.join([answers[i] for i in chosen])[1]
    metrics = task.score(answered, predictions)
    return DevAnswers(loaded, task, answered, predictions=predictions, rows=len(examples), metrics=metrics)


def dev_examples(config: FinetuneConfig) -> Sequence[Example]:
    """The rows that the run was evaluated on. Raises `UserError` where they cannot be read."""
    task = config.task
    name = task.dev if task.dev is not None else task.train
    if task.dev is None and task.dev_fraction is None:
        return []
    try:
        read = read_examples(find_labeled_file(name), task.settings, True, skip_bad=task.skip_bad)
        examples = list(read)
    except OSError as error:
        raise UserError(f"{name}: cannot be read: {error.strerror}") from None
    if task.dev is not None:
        return examples
    assert task.dev_fraction is not None
    return split_dev(examples, task.dev_fraction, config.seed)[1]
