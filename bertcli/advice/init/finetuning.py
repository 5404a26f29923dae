"""The config of a fine-tuning run: its model, the epochs that fit into the time, and its lines."""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertcli.advice.bench.plan import plan_finetuning
from bertcli.advice.bench.probe import Probe, probe
from bertcli.advice.init.files import Found, check_encodings
from bertcli.advice.init.fit_pretraining import start_seconds
from bertcli.advice.init.labeled import (
    few_shot_keys,
    length_keys,
    look_at_rows,
    shown_name,
    span_keys,
    split_files,
)
from bertcli.advice.init.task import find_task
from bertcli.advice.init.written import Request, Written, in_words, predicted
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config
from bertcli.config.run import with_values
from bertcli.config.yaml_text import Block, Line, scalar
from bertcli.corpus.language import likely_language
from bertcli.folders.locate import check_folder, is_hub_id, resolve_model
from bertcli.system.errors import UserError
from bertcli.system.terminal import Report
from bertcli.tasks.supervised import task_class

_PUBLISHED = {"en": "google-bert/bert-base-uncased", "zh": "google-bert/bert-base-chinese"}
_CASED = {"en": "google-bert/bert-base-cased"}
"""Language -> cased model, for tasks about names, whose capitals matter."""
_MULTILINGUAL = "FacebookAI/xlm-roberta-base"
_NAMED = 3


@dataclass(frozen=True)
class ModelChoice:
    """The model that a run starts with.

    Attributes:
        name: the name in a config.
        folder: the folder of the model; None: it is not on this machine.
    """

    name: str
    folder: Path | None
    comment: str


def choose_model(given: str | None, language: str, task: str) -> ModelChoice:
    """The given model, else a published one for the language, which is not downloaded.

    Raises `UserError` for a given folder that holds no model.
    """
    if given is not None:
        try:
            return ModelChoice(given, resolve_model(given), "given with --model")
        except UserError as error:
            if not is_hub_id(given):
                raise
            return ModelChoice(given, None, f"given with --model, and not available here now: {error}")
    here = sorted(str(path.parent) for path in Path("runs").glob("*/model/config.json"))
    also = f"; or a model of yours: {', '.join(here[:_NAMED])}" if here else ""
    published = _CASED if task_class(task).is_cased and language in _CASED else _PUBLISHED
    name = published.get(language, _MULTILINGUAL)
    why = f"published for {language}"
    if name == _MULTILINGUAL:
        why = f"published for 100 languages ({language})"
    folder = _cached(name)
    where = "" if folder else "; the run downloads it from the Hugging Face hub, which needs a network"
    return ModelChoice(name, folder, f"{why}{where}{also}")


def _cached(name: str) -> Path | None:
    """The folder of a published model in the local cache of the hub."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, "config.json")
    if not isinstance(found, str):
        return None
    try:
        check_folder(Path(found).parent)
    except UserError:
        return None
    return Path(found).parent


SECONDS = 8.0
"""Time for the measured steps; it is long because rows differ in length."""
_EPOCHS = ((1_000, 20), (10_000, 10))
"""Pairs (rows, most epochs for fewer rows): with few rows, more epochs help (Mosbach et al. 2021)."""
_USUAL_EPOCHS = 3


@dataclass(frozen=True)
class FinetuningFit:
    """The run that fits into the time.

    Attributes:
        seconds: time of the whole command.
        epoch_seconds: time of the whole command with a single epoch.
        ends_early: True if the run takes less than its time even with the most epochs for so many rows.
    """

    epochs: float
    seconds: float
    epoch_seconds: float
    ends_early: bool
    rows_per_second: float
    speed: Probe


def fit_finetuning(config: FinetuneConfig, seconds: float) -> FinetuningFit:
    """The epochs that fit into the time. Raises `UserError` as `advice.bench.plan.plan_finetuning`.

    Args:
        seconds: time of the whole command: start, reading, steps, evaluations.
    """
    fixed = start_seconds("bertcli.training.finetuning")
    begun = time.perf_counter()
    plan = plan_finetuning(with_values(config, {"training": {"epochs": 1.0}}), lambda line: None)
    fixed += time.perf_counter() - begun
    speed = probe(plan, SECONDS)
    epoch = plan.steps * speed.seconds
    forward = speed.seconds / 3  # the forward pass is a third of a step
    evaluation = forward * plan.heldout_tokens / speed.tokens
    rows = plan.steps * config.training.batch_size
    most = next((epochs for below, epochs in _EPOCHS if rows < below), _USUAL_EPOCHS)
    most = _USUAL_EPOCHS if config.task.few_shot else most  # one of these reads each row several times

    def seconds_of(epochs: float) -> float:
        return fixed + speed.first_seconds + epochs * epoch + math.ceil(epochs) * evaluation

    epochs = next((each for each in _descending(most) if seconds_of(each) <= seconds), 0.01)
    return FinetuningFit(
        epochs,
        seconds_of(epochs),
        epoch_seconds=seconds_of(1.0),
        ends_early=epochs == most and seconds_of(epochs) < 0.75 * seconds,
        rows_per_second=config.training.batch_size / speed.seconds,
        speed=speed,
    )


def _descending(most: int) -> Iterator[float]:
    """Numbers of epochs, descending: halves down to two epochs, then tenths, then hundredths of one."""
    yield from (number / 2 for number in range(2 * most, 4, -1))
    yield from (number / 10 for number in range(20, 10, -1))
    yield from (number / 100 for number in range(100, 0, -1))


_LANGUAGE_ROWS = 400
_MORE_EPOCHS = "of so many rows init takes no more epochs; raise training.epochs if the score still rises"
_ORDER = (
    *("type", "train", "dev", "dev_fraction", "format", "separator", "columns", "encoding", "bad_bytes"),
    *("text", "choices", "first_choice", "label", "multi_label", "label_separator", "ticks", "label_names"),
    *(
        "skip_labels",
        "tag_scheme",
        "span_ends",
        "overlaps",
        "few_shot",
        "skip_bad",
        "max_length",
        "windows",
        "doc_stride",
    ),
)
"""The order of the keys of `task` in the YAML."""


def write_finetuning(found: Found, output_dir: str, request: Request, report: Report) -> Written:
    """The config of a fine-tuning run. `report` takes lines for the user.

    Raises:
        UserError: a file shows no task that can be read; a given model is missing.
    """
    seconds = 60 * request.minutes
    check_encodings(found.seen)
    seen, dev, test = split_files(found.seen)
    train, task = shown_name(seen.path), find_task(seen)
    report(f"found: {train}: {task.summary}")
    if unused := [name for each in found.seen if (name := shown_name(each.path)) not in {train, dev, *test}]:
        named = ", ".join(unused[:_NAMED]) + (", ..." if len(unused) > _NAMED else "")
        report(f"left out: {named}: a run learns from one file and is evaluated on one")
    rows = look_at_rows(train, dev, task.keys, test=test, report=report)
    for line in rows.lines:
        report(f"  {line}")
    texts = [text for example in rows.train[:_LANGUAGE_ROWS] for text in example.texts]
    language = likely_language(texts)[0] or "en"
    start = choose_model(request.model, language, task.keys["type"])
    lengths, reasons = length_keys(rows.train, task.keys["type"], start.folder)
    spans, misfits = span_keys(rows, task.keys, start.folder)
    for line in misfits.values():
        report(f"  {line}")
    few, why = few_shot_keys(rows.of_file, task.keys)
    keys = task.keys | rows.keys | spans | few | lengths
    comments = task.comments | rows.comments | misfits | why | reasons
    value = {"output_dir": output_dir, "model": str(start.folder or start.name), "task": keys}
    fit, time = None, "The time is not predicted: the model is not on this machine."
    if start.folder is not None:
        report(f"measuring: some seconds of steps of {start.name}")
        fit = fit_finetuning(check_config(FinetuneConfig, value, "the config"), seconds)
        time = predicted(fit.seconds, fit.speed.training)
    held = [comments["train"]] if "train" in comments else []
    comments["train"] = "; ".join([*rows.lines[:1], *held]).removeprefix("train: ")
    order = sorted(keys, key=_ORDER.index)
    lines: list[Line | Block] = [
        Line("output_dir", output_dir),
        Line("model", start.name, beside=start.comment),
        Block("task", [Line(name, keys[name], beside=comments.get(name, "")) for name in order]),
        Block("training", [_epochs(fit)]),
    ]
    return Written(lines, time, "finetune", summary=list(_summary(keys, start, fit, seconds=seconds)))


def _epochs(fit: FinetuningFit | None) -> Line:
    if fit is None:
        usual = "the usual; the time was not measured, because the model is not here"
        return Line("epochs", 3.0, beside=usual)
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


def _summary(
    keys: Mapping[str, Any], start: ModelChoice, fit: FinetuningFit | None, seconds: float
) -> Iterator[str]:
    columns = [f"{name}: {scalar(keys[name])}" for name in ("text", "choices", "label") if name in keys]
    rows = f"rows of {keys['max_length']} tokens"
    if "windows" in keys:
        rows += f"; longer texts are read in windows (task.windows: {keys['windows']})"
    yield f"chosen: {', '.join([keys['type'], *columns])}, {rows}"
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
