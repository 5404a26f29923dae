"""A labeled file and minutes -> a fine-tuning config, with the reasons for its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bertcli.checks.language import likely_language
from bertcli.config.commented import Block, Line
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config
from bertcli.config.yaml_text import scalar
from bertcli.hf.config_file import read_architecture
from bertcli.samples import LABELED
from bertcli.start.files import Found, check_encodings
from bertcli.start.fit_finetuning import FinetuningFit, fit_finetuning
from bertcli.start.labeled import LabeledLook, length_keys, look_at_rows
from bertcli.start.model import ModelChoice, choose_model
from bertcli.start.splits import split_files
from bertcli.start.task import find_task
from bertcli.start.written import Written, in_words, machine

_LANGUAGE_ROWS = 400
_SMALL = 512
"""Hidden size up to which a model takes larger steps (Turc et al. 2019, "Well-Read Students Learn Better").
MiniLM (384) on WNUT-17: F1 0.44 after three epochs with 5e-5, 0.23 after five with 2e-5 (LOG.md)."""
_MORE_EPOCHS = "of so many rows init takes no more epochs; raise training.epochs if the score still rises"
_ORDER = (
    *("type", "train", "dev", "dev_fraction", "format", "separator", "columns", "encoding", "bad_bytes"),
    *("text", "choices", "first_choice", "label", "multi_label", "label_separator", "label_names"),
    *("skip_labels", "tag_scheme", "skip_bad", "max_length", "doc_stride"),
)
"""Of the keys of `task` in the YAML."""


def write_finetuning(
    found: Found, output_dir: str, model: str | None, seconds: float, report: Callable[[str], None]
) -> Written:
    """The config.

    Args:
        model: to start with; None: a published one for the language.
        seconds: of the whole run.
        report: takes lines for the user.

    Raises:
        UserError: a file in which no task can be read; a given model that is not there.
    """
    check_encodings(found.seen)
    seen, dev, test = split_files(found.seen)
    train = next((name for name, path in LABELED.items() if path == seen.path), str(seen.path))
    task = find_task(seen)
    report(f"found: {train}: {task.summary}")
    rows = look_at_rows(train, dev, task.keys, test=test, report=report)
    for line in rows.lines:
        report(f"  {line}")
    texts = [text for example in rows.train[:_LANGUAGE_ROWS] for text in example.texts]
    language = likely_language(texts)[0] or "en"
    start = choose_model(model, language, task.keys["type"])
    lengths, reasons = length_keys(rows.train, task.keys["type"], start.folder)
    keys, comments = task.keys | rows.keys | lengths, task.comments | rows.comments | reasons
    value = {"output_dir": output_dir, "model": str(start.folder or start.name), "task": keys}
    training = _learning_rate(start)
    config = check_config(
        FinetuneConfig, value | {"training": {line.name: line.value for line in training}}, "the config"
    )
    if start.folder is not None:
        report(f"measuring: some seconds of steps of {start.name}")
    fit = None if start.folder is None else fit_finetuning(config, seconds)
    lines: list[Line | Block] = [
        Line("output_dir", output_dir),
        Line("model", start.name, beside=start.comment),
        Block("task", _task_lines(keys, comments, rows)),
        Block("training", [_epochs(fit), *training]),
    ]
    summary = list(_summary(keys, start, fit, seconds=seconds))
    written = Written(lines, _head(fit), "finetune", summary=summary)
    check_config(FinetuneConfig, written.value, "the config")
    return written


def _task_lines(keys: Mapping[str, Any], comments: dict[str, str], rows: LabeledLook) -> list[Line]:
    held = [comments["train"]] if "train" in comments else []
    given = comments | {"train": "; ".join([*rows.lines[:1], *held]).removeprefix("train: ")}
    return [Line(name, keys[name], beside=given.get(name, "")) for name in sorted(keys, key=_ORDER.index)]


def _learning_rate(start: ModelChoice) -> list[Line]:
    if start.folder is None or read_architecture(start.folder / "config.json").hidden > _SMALL:
        return []
    return [Line("learning_rate", 5.0e-5, beside="a small model takes larger steps than the usual 2e-5")]


def _epochs(fit: FinetuningFit | None) -> Line:
    if fit is None:
        return Line(
            "epochs", 3.0, beside="the usual; the time was not measured, because the model is not here"
        )
    why = f"{in_words(fit.seconds)} in all, at {fit.rows_per_second:,.0f} rows a second (measured)"
    if fit.ends_early:
        why += f"; {_MORE_EPOCHS}"
    elif fit.epochs < 1.0:
        why += f": {_part_of_an_epoch(fit)}"
    return Line("epochs", fit.epochs, beside=why)


def _part_of_an_epoch(fit: FinetuningFit) -> str:
    minutes = math.ceil(fit.epoch_seconds / 60)
    return (
        f"{fit.epochs:.0%} of the rows are read, once; a run that reads all of them takes "
        f"{in_words(fit.epoch_seconds)} (epochs: 1.0, or --minutes {minutes})"
    )


def _head(fit: FinetuningFit | None) -> str:
    time = "The time is not predicted: the model is not on this machine."
    if fit is not None:
        where = machine(fit.speed.device, fit.speed.precision)
        time = f"Predicted: {in_words(fit.seconds)}, as measured on this machine ({where})."
    return (
        f"{time}\nA comment says why; `or` in it names what else it may be. All keys: bertcli config finetune"
    )


def _summary(
    keys: Mapping[str, Any], start: ModelChoice, fit: FinetuningFit | None, seconds: float
) -> Iterator[str]:
    yield f"chosen: {_task_in_words(keys)}, rows of {keys['max_length']} tokens"
    yield f"model: {start.name} ({start.comment})"
    if fit is None:
        yield "the time was not measured, because the model is not here; later, bertcli estimate predicts it"
        return
    epochs = f"{fit.epochs:g} epoch{'s' * (fit.epochs != 1)}"
    yield f"predicted: {in_words(fit.seconds)} for {epochs}, of {in_words(seconds)} asked for"
    if fit.ends_early:
        yield f"note: the run ends sooner; {_MORE_EPOCHS}"
    elif fit.epochs < 1.0:
        yield f"note: {_part_of_an_epoch(fit)}"


def _task_in_words(keys: Mapping[str, Any]) -> str:
    """`classification, text: message, label: kind`."""
    given = [f"{name}: {scalar(keys[name])}" for name in ("text", "choices", "label") if name in keys]
    return ", ".join([keys["type"], *given])
