"""A fine-tuning config -> examples to learn from and to be judged by, encoded, and what is odd about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bertcli.config.finetune import FinetuneConfig
from bertcli.engine.run_data import read_run_data, write_run_data
from bertcli.errors import UserError
from bertcli.files import file_hash
from bertcli.labelled.files import find_labelled_file, read_examples
from bertcli.labelled.labels import check_labels, label_set
from bertcli.labelled.report import Sizes, describe
from bertcli.labelled.split import split_dev
from bertcli.tasks.classification import label_weights
from bertcli.tasks.labelled import Item, LabelledTask, whole_lengths
from bertcli.tasks.registry import build_task
from bertcli.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Split:
    """Examples, and the items that the task made of them."""

    examples: Sequence[Any]
    items: list[Item]

    def first(self, number: int | None) -> Split:
        """The first `number` examples alone; None: all."""
        if number is None:
            return self
        return Split(self.examples[:number], [item for item in self.items if item.example < number])


@dataclass(frozen=True)
class LabelledData:
    task: LabelledTask
    train: Split
    dev: Split | None


def load_labelled_data(
    config: FinetuneConfig, tokenizer: Tokenizer, report: Callable[[str], None]
) -> LabelledData:
    """Read, check and encode the files of `config.task`, and report what is in them.

    Raises:
        UserError: a file that cannot be read as the config says, or whose labels do not fit together.
    """
    settings = config.task.settings
    read = partial(
        read_examples,
        settings=settings,
        labelled=True,
        skip_bad=config.task.skip_bad,
        report=report,
        note=report,
    )
    train, dev = list(read(find_labelled_file(config.task.train))), None
    if config.task.dev is not None:
        dev = list(read(find_labelled_file(config.task.dev)))
    elif config.task.dev_fraction is not None:
        train, dev = split_dev(train, config.task.dev_fraction, config.seed)
    labels = label_set(train, settings)
    if dev is not None:
        check_labels(dev, labels, settings)
    task = build_task(settings, labels, label_weights(config.task.class_weights, labels, train))
    data = LabelledData(
        task,
        Split(train, task.encode(train, tokenizer)),
        None if dev is None else Split(dev, task.encode(dev, tokenizer)),
    )
    splits = {"train": data.train} if data.dev is None else {"train": data.train, "dev": data.dev}
    examples = {name: split.examples for name, split in splits.items()}
    sizes = {name: Sizes(whole_lengths(split.items), len(split.items)) for name, split in splits.items()}
    for line in describe(examples, sizes, settings):
        report(line)
    return data


def note_data(path: Path, config: FinetuneConfig, labels: tuple[str, ...]) -> None:
    """Write down in `path` which labels, files and model a run learns from. Raises `UserError`: full disk."""
    write_run_data(path, _identity(config, labels))


def check_same_data(path: Path, config: FinetuneConfig, labels: tuple[str, ...]) -> None:
    """On a resume: the labels and files are those that `note_data` wrote down.

    Raises:
        UserError: they are others now.
    """
    before, now = read_run_data(path, {"labels": list, "files": dict}), _identity(config, labels)
    if before is None:
        return
    if before["labels"] != now["labels"]:
        raise UserError(
            f"cannot resume: the labels are {', '.join(now['labels']) or 'none'} now, and were "
            f"{', '.join(before['labels']) or 'none'} when the run began ({path}); put the file back, or "
            "start a new run in another output_dir"
        )
    changed = [name for name, content in now["files"].items() if before["files"].get(name) != content]
    if changed:
        raise UserError(
            f"cannot resume: {', '.join(changed)} changed since the run began ({path}); put it back, or "
            "start a new run in another output_dir"
        )


def _identity(config: FinetuneConfig, labels: tuple[str, ...]) -> dict[str, Any]:
    names = [name for name in (config.task.train, config.task.dev) if name is not None]
    files = {name: file_hash(find_labelled_file(name)) for name in names}
    files |= {str(path): file_hash(path, "blake2b") for path in _model_files(Path(config.model))}
    return {"labels": list(labels), "files": files}


def _model_files(folder: Path) -> list[Path]:
    """Weights and vocabulary: words that do not occur are taken from there again on a resume."""
    return sorted(
        path
        for path in folder.glob("*")
        if path.suffix in (".safetensors", ".bin") or path.name in ("vocab.txt", "tokenizer.json")
    )
