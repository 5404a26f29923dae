"""Labeled files: the split of each by its name, their rows, and keys for the lengths of rows."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bertcli.advice.init.files import Seen, full_suffix
from bertcli.config.section import DEFAULT_SEED
from bertcli.config.task import TaskSettings
from bertcli.folders.config_file import read_architecture
from bertcli.folders.lengths import trained_length
from bertcli.samples import LABELED
from bertcli.system.errors import UserError
from bertcli.system.remote import InputPath, RemotePath, find_like, has_list
from bertcli.system.terminal import Report
from bertcli.system.urls import is_remote
from bertcli.tasks.data_report import CUT, figures, overview
from bertcli.tasks.examples import Example
from bertcli.tasks.files import UNUSABLE, find_labeled_file, read_examples
from bertcli.tasks.labels import check_labels, label_set
from bertcli.tasks.places import misfits
from bertcli.tasks.split import split_dev
from bertcli.tasks.supervised import task_class
from bertcli.tokenizer.tokenizer import Tokenizer

_DEV = ("dev", "valid", "validation", "val", "eval")
_WORD = re.compile(
    r"(?<![a-z])(train(ing)?|dev|valid(ation)?|val|eval|test)(?![a-z])|^(train|dev|test)", re.IGNORECASE
)


def split_files(seen: Sequence[Seen]) -> tuple[Seen, str | None, list[str]]:
    """The training file, the name of the file to evaluate on, and the names of test files for later.

    Raises `UserError` if none of several files has the name of a training file.
    """
    parts = [split_of(each.path) for each in seen]
    train = next(
        [each for each, part in zip(seen, parts, strict=True) if part == wanted]
        for wanted in ("train", "", *parts)
        if wanted in parts
    )
    if len(train) > 1:
        listed = ", ".join(each.path.name for each in train[:5])
        raise UserError(
            f"fine-tuning learns from one file, and these are {len(train)}: {listed}; give one of them, or "
            "put their rows into one. If they are a corpus, give --for pretrain"
        )
    own = train[0]
    given = [each.path for each in seen if each is not own]
    beside = [*given, *(path for path in _beside(own) if path not in given)]
    dev, test = (
        [shown_name(path) for path in beside if split_of(path) == split] for split in ("dev", "test")
    )
    return own, dev[0] if dev else None, test


def split_of(path: InputPath) -> str:
    """The split by the name of a file: `train`, `dev` or `test`; else an empty text."""
    found = _WORD.search(_stem(path))
    word = found[0].lower() if found else ""
    return "dev" if word in _DEV else "train" if word.startswith("train") else word


def _beside(train: Seen) -> Sequence[InputPath]:
    """Files for evaluation in the folder of the training file; their names differ only in the split."""
    own, suffix = _without_split(train.path), full_suffix(train.path)
    if isinstance(train.path, RemotePath):
        there: Sequence[InputPath] = find_like(train.path, suffix)
    else:
        there = [path for path in sorted(train.path.parent.iterdir()) if path.is_file()]
    return [
        path
        for path in there
        if full_suffix(path) == suffix
        and split_of(path) in ("dev", "test")
        and path != train.path
        and _without_split(path) in (own, "")
    ]


def _stem(path: InputPath) -> str:
    return path.name.removesuffix(full_suffix(path))


def _without_split(path: InputPath) -> str:
    return re.sub(r"[\W_]+", "", _WORD.sub("", _stem(path))).lower()


def shown_name(path: InputPath) -> str:
    """The name of a file in a config; a bundled sample has its own name."""
    return next((name for name, sample in LABELED.items() if sample == path), str(path))


_HELD, _MULTIPLE = 0.98, 16
"""The share of the rows that `max_length` holds, and the number that it is a multiple of."""
_LONGEST = 512
_TOKENS_PER_WORD = 1.4
"""Tokens per word of a published vocabulary; assumed if no tokenizer is at hand."""
_MEASURED_ROWS = 2000
_FEW_A_LABEL, _FEW = 30, 1_000
"""The rows of the rarest label, and all rows, below which `few_shot` is chosen."""


@dataclass(frozen=True)
class LabeledLook:
    """The rows of labeled files.

    Attributes:
        keys: keys of `task`: the files, and how their rows are read.
        lines: lines that describe the files.
        train, dev: the rows to train on, and to evaluate on.
    """

    keys: dict[str, Any]
    comments: dict[str, str]
    lines: list[str]
    train: Sequence[Example]
    dev: Sequence[Example]

    @property
    def of_file(self) -> Sequence[Example]:
        """The rows of the training file, with those that are split off for evaluation."""
        return [*self.train, *self.dev] if "dev_fraction" in self.keys else self.train


def look_at_rows(
    train: str, dev: str | None, task: dict[str, Any], test: Sequence[str], report: Report
) -> LabeledLook:
    """Read the files. Raises `UserError` if most rows cannot be read, or the labels make no task.

    Args:
        task: the keys that say how to read the files.
        test: files that are left for `bertcli evaluate`.
        report: a function that takes lines about rows and files that are left out, with reasons.
    """
    settings = TaskSettings(**task)
    examples, skipped = _read(train, settings, report)
    keys: dict[str, Any] = {"train": train}
    comments: dict[str, str] = {}
    labels = label_set(examples, settings)
    splits: dict[str, Sequence[Example]] = {"train": examples}
    lack = "is beside it" if not is_remote(train) or has_list(train) else "was given"
    reason = f"no file for evaluation {lack}; this share is split off"
    if dev is not None:
        try:
            rows, skipped_of_dev = _read(dev, settings, report)
            check_labels(rows, labels, settings)
            keys["dev"], comments["dev"], splits["dev"] = dev, "by its name", rows
            skipped = skipped or skipped_of_dev
        except UserError as error:
            problem = str(error).splitlines()[0].removeprefix(f"{dev}: ")
            reason = f"{dev} cannot be used: {problem}"
            report(f"left out: {reason}")
    if skipped is not None:
        keys["skip_bad"], comments["skip_bad"] = True, skipped
    if "dev" not in splits:
        fraction = 0.1 if len(examples) >= 500 else 0.2
        try:
            splits["train"], splits["dev"] = split_dev(examples, fraction, DEFAULT_SEED)
            keys["dev_fraction"], comments["dev_fraction"] = fraction, reason
        except UserError:
            comments["train"] = f"{len(examples)} rows, too few to split some off: nothing is evaluated"
    if test:
        where = "dev" if "dev" in keys else "dev_fraction" if "dev_fraction" in keys else "train"
        also = f"{', '.join(test)} is left for bertcli evaluate"
        report(also)
        comments[where] = "; ".join(filter(None, [comments.get(where), also]))
    lines = overview(figures(splits, {}, settings))
    return LabeledLook(keys, comments, lines, train=splits["train"], dev=splits.get("dev", ()))


_MENDS = {"span_ends": ("widen", "whole words are taken"), "overlaps": ("longest", "the longest is kept")}


def span_keys(
    rows: LabeledLook, task: dict[str, Any], folder: Path | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The keys by which spans are read that do not fit the words of the model in `folder`; and comments."""
    settings = TaskSettings(**task)
    if settings.format != "spans" or folder is None:
        return {}, {}
    found = misfits([*rows.train, *rows.dev], settings, Tokenizer.load(folder))
    keys = {key: _MENDS[key][0] for key in found}
    return keys, {key: f"{line}: {_MENDS[key][1]}; or refuse" for key, line in found.items()}


def few_shot_keys(examples: Sequence[Example], task: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The key `few_shot` where a label has few rows and the file has few; and its comment.

    `task`: the keys that say how to read the file.
    """
    settings = TaskSettings(**task)
    counts = Counter(name for example in examples for name in example.names)
    if "few_shot" not in task_class(settings.type).keys or settings.multi_label or not counts:
        return {}, {}
    rarest = min(counts, key=lambda name: (counts[name], name))
    if counts[rarest] >= _FEW_A_LABEL or len(examples) >= _FEW:
        return {}, {}
    why = f"the label {rarest!r} has {counts[rarest]} rows; texts are compared with each other first"
    return {"few_shot": True}, {"few_shot": why}


def length_keys(
    examples: Sequence[Example], task: str, folder: Path | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """The key `max_length`, and `windows` and `doc_stride` where many texts are longer; and their comments.

    `folder`: the folder of the model; None: it is not at hand.
    """
    kind, most, why = task_class(task), _LONGEST, ""
    if folder is not None:
        sizes = read_architecture(folder / "config.json")
        trained = trained_length(folder)
        most = min(sizes.usable_positions, trained or _LONGEST)
        why = f"; the model was trained on rows of {trained}" if trained else ""
    step = max(1, len(examples) // _MEASURED_ROWS)
    lengths = _lengths(examples[::step], folder)
    held = int(np.quantile(lengths, _HELD))
    length = min(most, kind.longest_row, max(_MULTIPLE, -(-held // _MULTIPLE) * _MULTIPLE))
    tokens = "tokens" if folder is not None else "tokens, estimated by words"
    comment = f"{_HELD:.0%} of the rows have up to {held:,} {tokens}"
    keys: dict[str, Any] = {"max_length": length}
    comments = {}
    longer = float(np.mean(np.array(lengths) > length))
    if "windows" in kind.keys and longer > CUT:
        keys["windows"] = "mean"
        comments["windows"] = f"{longer:.0%} of the rows have more tokens; first would cut them"
    if held > length and (kind.in_windows or "windows" in keys):
        keys["doc_stride"] = min(128, length // 4)
        comment += f"; longer ones are read in windows{why}"
    elif held > length:
        comment += f"; longer ones are cut{why}"
    return keys, {"max_length": comment, **comments}


def _read(name: str, settings: TaskSettings, report: Report) -> tuple[list[Example], str | None]:
    """The rows, and if some cannot be used, a line with number and reason. `report` takes lines on them."""
    said: list[str] = []
    options: dict[str, Any] = {"skip_bad": True, "report": said.append, "note": said.append}
    examples = list(read_examples(find_labeled_file(name), settings, labeled=True, **options))
    for line in said:
        report(line)
    unusable = next((line for line in said if UNUSABLE in line), None)
    if unusable is None:
        return examples, None
    number, first, *_ = unusable.split("\n")
    return examples, f"{number.strip()} {first.strip()}"


def _lengths(examples: Sequence[Example], folder: Path | None) -> list[int]:
    """Number of tokens in each row, including special ones."""
    texts = [" ".join(example.texts[:2]) for example in examples]
    special = 2 + max(len(example.texts[:2]) for example in examples) - 1
    if folder is None:
        return [round(_TOKENS_PER_WORD * max(len(text.split()), len(text) / 6)) + special for text in texts]
    return [len(ids) + special for ids in Tokenizer.load(folder).encode_batch(texts)]
