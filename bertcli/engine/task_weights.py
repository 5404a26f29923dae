"""The weights of a fine-tuning run <-> whole model folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from bertcli import ranks
from bertcli.config.finetune import TaskSettings
from bertcli.engine.occurring_words import OccurringWords
from bertcli.files import disk_errors, write_folder
from bertcli.hf.task_folder import load_task_folder, save_task_folder
from bertcli.model.task_models import TaskModel
from bertcli.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class TaskWeights:
    """What turns the weights of the run's `model` into those of the whole one, and back."""

    model: TaskModel
    words: OccurringWords
    tokenizer: Tokenizer
    settings: TaskSettings
    labels: tuple[str, ...]

    def read(self, folder: Path) -> dict[str, Tensor]:
        return self.words.narrow_weights(load_task_folder(folder).model.state_dict())

    def save(self, folder: Path, weights: Mapping[str, Tensor], card: str | None = None) -> None:
        """File by file, as for a checkpoint that is renamed when it is complete."""
        whole = self.words.widen_weights(weights)
        save_task_folder(folder, self.model, self.tokenizer, self.settings, self.labels, card, whole)

    def replace(
        self,
        folder: Path,
        weights: Mapping[str, Tensor],
        card: str | None = None,
        finish: Callable[[Path], None] = lambda path: None,
    ) -> None:
        """At once, and by the first rank alone; `finish` comes before the folder takes its name.

        Raises:
            UserError: the disk is full or may not be written; what was there before stays.
        """

        def fill(path: Path) -> None:
            self.save(path, weights, card)
            finish(path)

        with disk_errors(f"{folder}: the model could not be written"):
            ranks.on_first(lambda: write_folder(folder, fill))
