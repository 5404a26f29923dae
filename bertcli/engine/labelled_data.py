"""A fine-tuning config -> examples to learn from and to be judged by, encoded, and what is odd about them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bertcli.config.finetune import FinetuneConfig
from bertcli.errors import UserError
from bertcli.files import file_hash, write_text
from bertcli.labelled.files import find_labelled_file, read_examples
from bertcli.labelled.labels import check_labels, label_set
from bertcli.labelled.report import describe
from bertcli.labelled.split import split_dev
from bertcli.tasks.classification import label_weights
from bertcli.tasks.labelled import Item, LabelledTask
from bertcli.tasks.registry import build_task
from bertcli.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Split:
    """Examples, and the items that the task made of them."""

    examples: Sequence[Any]
    items: list[Item]


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
        read_examples, settings=settings, labelled=True, skip_bad=config.task.skip_bad, report=report
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
    for line in describe(train, dev, [item.length + item.dropped for item in data.train.items], settings):
        report(line)
    return data


def check_same_data(path: Path, config: FinetuneConfig, labels: tuple[str, ...]) -> None:
    """On a resume: the files and labels are those that the run began with. Else write them down in `path`.

    Raises:
        UserError: they are others now.
    """
    files = {"train": config.task.train, "dev": config.task.dev}
    now = {
        "labels": list(labels),
        "files": {k: file_hash(find_labelled_file(name)) for k, name in files.items() if name is not None},
    }
    if not path.exists():
        write_text(path, json.dumps(now, indent=1, ensure_ascii=False) + "\n")
        return
    before = json.loads(path.read_text(encoding="utf-8"))
    if before["labels"] != now["labels"]:
        raise UserError(
            f"cannot resume: the labels are {', '.join(now['labels']) or 'none'} now, and were "
            f"{', '.join(before['labels']) or 'none'} when the run began ({path}); put the file back, or "
            "start a new run in another output_dir"
        )
    changed = [files[k] for k, value in now["files"].items() if before["files"].get(k) != value]
    if changed:
        raise UserError(
            f"cannot resume: {', '.join(map(str, changed))} changed since the run began ({path}); put it "
            "back, or start a new run in another output_dir"
        )
