"""The labeled files of a run -> its task, with the examples that it learns from and is evaluated on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from bertcli.batches.order import EpochOrder
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.task import TaskConfig, TaskSettings
from bertcli.objectives.base import JointTask
from bertcli.system.terminal import Report
from bertcli.tasks.data_report import describe
from bertcli.tasks.examples import AnyExample
from bertcli.tasks.few_shot import FewShot
from bertcli.tasks.files import find_labeled_file, read_examples, settings_found
from bertcli.tasks.labels import check_labels, label_set
from bertcli.tasks.split import split_dev, split_folds
from bertcli.tasks.supervised import Item, LabeledTask, mean_length, num_tokens, task_class
from bertcli.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Split:
    """Examples, and the items that the task encoded them to. `places`: of a fold, their numbers from 0."""

    examples: Sequence[Any]
    items: list[Item]
    places: Sequence[int] = ()

    def first(self, number: int | None) -> Split:
        """The first `number` examples alone; None: all."""
        if number is None:
            return self
        return Split(self.examples[:number], [item for item in self.items if item.example < number])


@dataclass(frozen=True)
class LabeledRows:
    """The rows of labeled items, by which a run is planned.

    Attributes:
        mean_length: mean tokens of a row.
        tokens: tokens of all rows.
        largest: most rows of an item; they are always computed together.
        joint: most rows of a step if one loss joins them, so that a second micro-batch would need a second
            forward pass of both; None: the loss is a sum over items.
    """

    mean_length: float
    tokens: int
    largest: int = 1
    joint: int | None = None


@dataclass(frozen=True)
class LabeledData:
    """A task and its encoded examples."""

    task: LabeledTask
    train: Split
    dev: Split | None

    def order(self, batch_size: int, seed: int) -> EpochOrder:
        """Step -> the numbers of its training items."""
        return self.task.order(self.train.items, batch_size, seed)

    def rows(self, batch_size: int) -> LabeledRows:
        """The rows of the training items; `batch_size`: the items of a step."""
        sizes = sorted((len(item.rows) for item in self.train.items), reverse=True)
        joint = sum(sizes[:batch_size]) if isinstance(self.task, JointTask) else None
        return LabeledRows(mean_length(self.train.items), num_tokens(self.train.items), sizes[0], joint=joint)


def task_to_train(config: TaskConfig, settings: TaskSettings, labels: tuple[str, ...]) -> LabeledTask:
    """The task of a run, with the loss that the config asks for; `settings` name what the files hold."""
    return (FewShot if config.few_shot else task_class(settings.type))(settings, labels)


def divided(
    rows: Sequence[AnyExample], config: FinetuneConfig
) -> tuple[Sequence[AnyExample], Sequence[AnyExample] | None, list[int]]:
    """The rows of the training file that a run learns from and is evaluated on, and the places of the latter.

    There are no places without `fold`, and nothing to evaluate on without it and `dev_fraction`.

    Raises `UserError` as `split_dev` and `split_folds`, also for a run of all folds.
    """
    task, seed = config.task, config.seed
    if task.dev_fraction is not None:
        train, dev = split_dev(rows, task.dev_fraction, seed, group=task.group)
        return train, dev, []
    folds = [] if config.folds is None else split_folds(rows, config.folds, seed, group=task.group)
    if config.fold is None:
        return rows, None, []
    places = [place for place, fold in enumerate(folds) if fold == config.fold]
    train = [row for row, fold in zip(rows, folds, strict=True) if fold != config.fold]
    return train, [rows[place] for place in places], places


def load_labeled_data(config: FinetuneConfig, tokenizer: Tokenizer, report: Report) -> LabeledData:
    """Read, check and encode the files of `config.task`, and report their content.

    Raises:
        UserError: a file that cannot be read as the config says, or labels that do not match.
    """
    settings = settings_found(config.task.settings, config.task.train)
    options: dict[str, Any] = {"skip_bad": config.task.skip_bad, "report": report, "note": report}
    options["tokenizer"] = tokenizer
    read = partial(read_examples, settings=settings, labeled=True, **options)
    rows = list(read(find_labeled_file(config.task.train)))
    train, dev, places = divided(rows, config)
    if config.task.dev is not None:
        dev = list(read(find_labeled_file(config.task.dev)))
    labels = label_set(rows if places else train, settings)  # the outputs of all folds are the same
    if dev is not None:
        check_labels(dev, labels, settings)
    task = task_to_train(config.task, settings, labels)
    task.prepare(train, report, config.task.class_weights)
    examples = {"train": train} if dev is None else {"train": train, "dev": dev}
    splits = {name: Split(rows, task.encode(rows, tokenizer)) for name, rows in examples.items()}
    if places:
        splits["dev"] = replace(splits["dev"], places=places)
    items = {name: split.items for name, split in splits.items()}
    for line in describe(examples, items, settings):
        report(line)
    return LabeledData(task, splits["train"], splits.get("dev"))
