"""Small real fine-tuning runs: the bundled messages cut short, a model of a few thousand weights."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any

import pytest
import torch

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config
from bertcli.config.section import Decoding
from bertcli.corpus.streams import read_lines
from bertcli.folders.model_folder import save_model_folder
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import PretrainingModel
from bertcli.system import files as system_files
from bertcli.tasks.files import find_labeled_file
from bertcli.training.best import BestModel
from bertcli.training.checkpoint import CheckpointWriter, RunState
from bertcli.training.finetuning import Finetuned, finetune
from bertcli.training.metrics_log import MetricsLog
from tests.small_runs import read_rows
from tests.wordpieces import wordpiece

_CHARACTERS = string.ascii_lowercase + string.digits + string.punctuation
LETTERS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *_CHARACTERS,
    *(f"##{character}" for character in _CHARACTERS),
]
"""A vocabulary that spells every English word."""


def write_model(folder: Path, dropout: float = 0.1, **changes: Any) -> Path:
    """A pretrained model, as far as its folder goes: a body, MLM and NSP heads, freshly drawn."""
    torch.manual_seed(0)
    sizes = Architecture(
        len(LETTERS), 32, layers=2, heads=4, feed_forward=64, max_positions=64, dropout=dropout, **changes
    )
    model = PretrainingModel(sizes)
    save_model_folder(folder, model, wordpiece(LETTERS))
    return folder


def write_spam(path: Path, rows: int, skip: int = 0) -> Path:
    """Rows of the bundled messages, under their header."""
    header, *lines = read_lines(find_labeled_file("sms-spam"), Decoding())
    path.write_text("\n".join([header, *lines[skip : skip + rows]]) + "\n", encoding="utf-8")
    return path


def spam_config(folder: Path, **sections: Any) -> dict[str, Any]:
    """A config of a run of seconds in `folder/run`; `sections` override its keys."""
    config: dict[str, Any] = {
        "output_dir": str(folder / "run"),
        "seed": 7,
        "model": str(folder / "bert"),
        "task": {
            "type": "classification",
            "train": str(folder / "train.tsv"),
            "dev": str(folder / "dev.tsv"),
            "text": "message",
            "label": "label",
            "max_length": 32,
        },
        "training": {
            "epochs": 3,
            "batch_size": 16,
            "micro_batch_size": 8,
            "learning_rate": 1.0e-3,
            "device": "cpu",
            "precision": "fp32",
        },
        "logging": {"every_steps": 1},
    }
    for name, value in sections.items():
        config[name] = config[name] | value if isinstance(config.get(name), dict) else value
    return config


def spam_files(folder: Path) -> Path:
    """All that `spam_config` names: a model, 96 messages to learn from and 32 to be judged by."""
    write_model(folder / "bert")
    write_spam(folder / "train.tsv", rows=96)
    write_spam(folder / "dev.tsv", rows=32, skip=96)
    return folder


def checked(config: dict[str, Any]) -> FinetuneConfig:
    return check_config(FinetuneConfig, config, "test")


class Killed(BaseException):
    """Ends a run where it stands, as SIGKILL would."""


def kill_at(patch: pytest.MonkeyPatch, point: str, step: int) -> None:
    """Let the next run die at `step`.

    Having written a row of the log ("train", "heldout") or the best model ("best"); or before the checkpoint
    is begun ("save") or gets its name ("rename").
    """
    if point in ("train", "heldout"):
        write = MetricsLog.write

        def write_and_die(self: MetricsLog, row: dict[str, Any]) -> None:
            write(self, row)
            if (row["split"], row["step"]) == (point, step):
                raise Killed

        patch.setattr(MetricsLog, "write", write_and_die)
    elif point == "best":
        settled = BestModel.is_settled

        def die_or_say(self: BestModel) -> bool:  # what is asked once the best model is written
            if self._steps and self._steps[-1] == step:
                raise Killed
            return bool(settled.__get__(self))

        patch.setattr(BestModel, "is_settled", property(die_or_say))
    elif point == "save":
        save = CheckpointWriter.save

        def die_or_save(self: CheckpointWriter, state: RunState) -> None:
            if state.step == step:
                raise Killed
            save(self, state)

        patch.setattr(CheckpointWriter, "save", die_or_save)
    else:
        assert point == "rename"
        rename = system_files.os.rename

        def die_or_rename(source: Path, target: Path) -> None:
            if Path(target).name == f"step-{step:08d}":
                raise Killed
            rename(source, target)

        patch.setattr(system_files.os, "rename", die_or_rename)


def write_spam_split(folder: Path) -> Path:
    """60 rows to learn from and 20 others to evaluate on, without a model."""
    write_spam(folder / "train.tsv", rows=60)
    write_spam(folder / "dev.tsv", rows=20, skip=60)
    return folder


def run(config: dict[str, Any], resume: bool = False, overwrite: bool = False) -> Finetuned:
    """In this process, which is faster than a new one."""
    return finetune(checked(config), resume, overwrite)


def rows_but_times(path: Path, split: str | None = None) -> list[dict[str, Any]]:
    """The rows of `metrics.jsonl` without what differs between two runs of one config."""
    times = ("seconds", "tokens_per_second")
    return [{k: v for k, v in row.items() if k not in times} for row in read_rows(path, split)]
