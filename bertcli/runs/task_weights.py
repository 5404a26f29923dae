"""The weights of a fine-tuning run <-> model folders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from bertcli.distributed import ranks
from bertcli.config.finetune import TaskSettings
from bertcli.checkpoints.numbered import free_path, newest_path
from bertcli.files import disk_errors
from bertcli.hf.task_folder import load_task_folder, save_task_folder
from bertcli.model.task_models import TaskModel
from bertcli.owned.folders import write_folder
from bertcli.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class TaskWeights:
    """How the weights of the run's `model` are written and read."""

    model: TaskModel
    tokenizer: Tokenizer
    settings: TaskSettings
    labels: tuple[str, ...]

    def read(self, folder: Path) -> dict[str, Tensor]:
        return load_task_folder(folder).model.state_dict()

    def save(self, folder: Path, weights: Mapping[str, Tensor], card: str | None = None) -> None:
        """File by file, as for a checkpoint that is renamed when it is complete."""
        save_task_folder(folder, self.model, self.tokenizer, self.settings, self.labels, card, weights)

    def keep_best(self, checkpoints: Path, weights: Mapping[str, Tensor]) -> None:
        """In the place of the best ones so far; raises as `replace`."""
        self.replace(ranks.on_first(lambda: free_path(checkpoints / "best")), weights)

    def read_best(self, checkpoints: Path) -> dict[str, Tensor]:
        return self.read(ranks.on_first(lambda: newest_path(checkpoints / "best")))

    def replace(self, folder: Path, weights: Mapping[str, Tensor], card: str | None = None) -> None:
        """At once, and by the first rank alone.

        Raises:
            UserError: the disk is full or may not be written; what was there before stays.
        """

        def fill(path: Path) -> None:
            self.save(path, weights, card)

        with disk_errors(f"{folder}: the model could not be written"):
            ranks.on_first(lambda: write_folder(folder, fill))
