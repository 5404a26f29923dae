"""A task model and labeled examples -> its predictions, loss and metrics."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_config
from bertcli.config.task import TaskSettings
from bertcli.folders.lengths import LongRows
from bertcli.folders.run_layout import RunLayout, run_of_model
from bertcli.folders.task_folder import LoadedTask
from bertcli.inference.outputs import beside, cut_line
from bertcli.inference.predict import Runner, runner_of
from bertcli.system.errors import UserError
from bertcli.system.files import file_hash, plain_text
from bertcli.system.remote import InputPath
from bertcli.system.terminal import say, working
from bertcli.tasks.data import Split
from bertcli.tasks.examples import Example
from bertcli.tasks.files import read_examples
from bertcli.tasks.labels import check_labels, spelled_as
from bertcli.tasks.shown import Prediction
from bertcli.tasks.supervised import LabeledBatch, LabeledTask
from bertcli.training import ranks, wrapping
from bertcli.training.scores import Scores, evaluation_mode


def evaluate_task(runner: Runner, split: Split) -> tuple[Scores, list[Prediction]]:
    """Answer all examples without dropout, each rank a part.

    The items of `split` must have targets.
    """
    model, task, examples = runner.model, runner.task, split.examples
    number, parts = (0, 1) if wrapping.is_sharded(model) else (ranks.rank(), ranks.num_ranks())
    first, last = (len(examples) * part // parts for part in (number, number + 1))
    own_items = [
        replace(item, example=item.example - first) for item in split.items if first <= item.example < last
    ]
    own_total = torch.zeros((), dtype=torch.float64)
    answered = 0

    def add_loss(logits: Tensor, batch: LabeledBatch) -> None:
        nonlocal answered
        answered += len(batch.items)
        term = task.term(logits, batch)
        own_total.add_(term.loss.double().cpu() * term.unit)

    shown = (
        nullcontext()
        if runner.in_training
        else working(lambda: f"{answered:,} of {len(own_items):,} rows answered")
    )
    with evaluation_mode(model), shown:
        predictions = replace(runner, watch=add_loss).predict(examples[first:last], own_items)
    total = float(own_total)
    if parts > 1:
        predictions, total = ranks.gather(predictions), ranks.add_up([total])[0]
    everything = LabeledBatch(tuple(split.items), runner.tokenizer.pad_id)
    joint_loss, predictions = task.join(predictions)
    loss = total / task.count(everything) if joint_loss is None else joint_loss
    metrics = task.score(examples, predictions)
    return Scores({"": loss}, {}, everything.num_tokens, metrics=metrics), predictions


ROWS = 50
"""Most rows of a readable table."""


def scores_json(scores: Scores) -> dict[str, Any]:
    """`loss` and every metric by name, with tables."""
    return {"loss": scores.loss, **scores.metrics}


def scores_table(scores: Scores) -> str:
    """The scores as text: one number a line, then each table: per class, per type, the confusions. A long
    table is cut to `ROWS` rows: the most frequent classes."""
    lines = []
    for name, value in scores_json(scores).items():
        if name in scores.label_of_f1:
            continue
        if isinstance(value, Mapping):
            lines += ["", *_rows(name, value)]
        elif name == "confusions":
            lines += ["", *_confusions(value)]
        elif isinstance(value, list):
            lines += ["", f"{name} (a row for each right label, a column for each given one)"]
            lines += ["  " + "".join(f"{count:>8}" for count in row) for row in value]
        elif isinstance(value, float):
            lines.append(f"{scores.title(name):<27} {value:.4f}")
        else:
            lines.append(f"{name:<28}{value}")
    return "\n".join(lines)


def _rows(name: str, table: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Row name -> (column name -> value) as aligned columns."""
    columns = list(next(iter(table.values()), {}))
    width = max([len(name), *map(len, table)]) + 2
    lines = [f"{name:<{width}}" + "".join(f"{column:>11}" for column in columns)]
    shown = table.items()
    if len(table) > ROWS:
        shown = sorted(shown, key=lambda each: -each[1].get("count", 0))[:ROWS]
    for row, values in shown:
        cells = (f"{v:>11.4f}" if isinstance(v, float) else f"{v:>11}" for v in values.values())
        lines.append(f"{row:<{width}}" + "".join(cells))
    return lines + _more(len(table), "--json has them all")


def _confusions(confusions: Sequence[Mapping[str, Any]]) -> list[str]:
    """The lines of the most frequent confusions, which replace a matrix that has too many labels."""
    head = "confusions, the most frequent (right -> given; there are too many labels for a matrix)"
    lines = [f"{each['count']:>8}  {each['right']} -> {each['given']}" for each in confusions[:ROWS]]
    return [head, *lines, *_more(len(confusions), f"--json has {len(confusions)}")]


def _more(count: int, where: str) -> list[str]:
    return [f"... and {count - ROWS:,} more ({where})"] if count > ROWS else []


@dataclass(frozen=True)
class Evaluated:
    """Labeled examples, the answers to them in the same order, and their scores.

    Attributes:
        folds: the fold of each example, whose model answered it, from 1; empty: one model answered all.
    """

    task: LabeledTask
    examples: Sequence[Example]
    predictions: Sequence[Prediction]
    scores: Scores
    folds: Sequence[int] = ()

    def cases(self, only_wrong: bool = False) -> Iterator[dict[str, Any]]:
        """Each row, or each with a wrong answer: its place and columns, the prediction, the right answer, and
        its fold."""
        for number, (example, prediction) in enumerate(zip(self.examples, self.predictions, strict=True)):
            if not (only_wrong and self.task.is_right(example, prediction)):
                yield {
                    "where": example.where,
                    "columns": beside(example.columns, {}),
                    "prediction": prediction.as_json(),
                    "right": self.task.right_answer(example),
                    **({"fold": self.folds[number]} if self.folds else {}),
                }


def out_of_fold(folds: Sequence[tuple[Evaluated, Sequence[int]]]) -> Evaluated:
    """The answers of all folds, each with the places of its examples in the file, in the order of the file.

    The scores are those of all answers together, and the answers have the temperature and the thresholds that
    are fitted on all of them. The loss is the mean of the folds' losses by their examples.
    """
    rows = sorted(
        (place, fold, number)
        for fold, (_, places) in enumerate(folds, start=1)
        for number, place in enumerate(places)
    )
    examples = [folds[fold - 1][0].examples[number] for _, fold, number in rows]
    predictions = [folds[fold - 1][0].predictions[number] for _, fold, number in rows]
    parts, task = [part for part, _ in folds], folds[0][0].task
    loss = math.fsum(part.scores.loss * len(part.examples) for part in parts) / len(rows)
    tokens = sum(part.scores.tokens for part in parts)
    scores = Scores({"": loss}, {}, tokens, metrics=task.score(examples, predictions))
    settled = task.settled(predictions, task.kept_settings(scores.metrics))
    return Evaluated(task, examples, settled, scores=scores, folds=[fold for _, fold, _ in rows])


_CASE = {"where": str, "columns": dict, "prediction": dict, "fold": int}
"""The keys of a case that others than the task read, and their types."""


def read_cases(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of `Evaluated.cases` in `out-of-fold.jsonl` of a run. Raises `UserError` for damage."""
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                case = json.loads(line)
                if "right" not in case or not all(isinstance(case[key], kind) for key, kind in _CASE.items()):
                    raise ValueError(f"line {number} is no row with its answer")
                yield case
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UserError(
            f"{path}: damaged ({error}); remove it, and finish the run again with --resume to have it back"
        ) from None


def evaluate_file(
    loaded: LoadedTask,
    settings: TaskSettings,
    data: InputPath,
    skip_bad: bool,
    device: torch.device,
    batch_size: int | None,
) -> Evaluated:
    """Answer every row of `data` in fp32, and score the answers.

    Args:
        settings: the model's own, or adapted to the file (`inference.inputs.adapt_settings`).
        skip_bad: leave out rows that cannot be used, and say so.
        batch_size: None: the device's usual one.

    Raises:
        UserError: the file cannot be read with these settings, or has labels that the model does not have;
            plain text, which has no right answers.
    """
    if settings.is_plain_text:
        raise UserError(
            f"{data}: plain text has no right answers to evaluate by; name the columns of pairs: --text A "
            "--text B (and of their score, if there is one: --label C)"
        )
    options: dict[str, Any] = {"skip_bad": skip_bad, "report": say, "note": say}
    examples = list(read_examples(data, settings, True, tokenizer=loaded.tokenizer, **options))
    examples = spelled_as(examples, loaded.labels)
    check_labels(examples, loaded.labels, settings)
    runner = runner_of(loaded, device, settings, batch_size=batch_size)
    task = runner.task
    items = task.encode(examples, loaded.tokenizer)
    long_rows = LongRows(loaded.folder)
    long_rows.count(item.length for item in items)
    long_rows.tell()
    cut = len({item.example for item in items if item.dropped})
    if cut:
        say(cut_line(cut, len(examples)))
    scores, predictions = evaluate_task(runner, Split(examples, items))
    return Evaluated(task, examples, predictions, scores=scores)


def seen_line(folder: Path, data: InputPath) -> str | None:
    """A line if the run of a model folder learned from the file `data` or chose the model by it."""
    run = run_of_model(folder)
    if run is None:
        return None
    layout = RunLayout(run)
    try:
        config = load_config(FinetuneConfig, layout.config)
        folders = (layout, *map(RunLayout, layout.part_folders()))
        identity = next(each for each in folders if each.data.is_file())
        known, digest = json.loads(plain_text(identity.data))["files"], file_hash(data)
        same = {name for name, content in known.items() if content == digest}
    except (UserError, OSError, ValueError, LookupError, TypeError, AttributeError, StopIteration):
        return None  # a copied folder may have no run around it
    if config.task.train in same:
        return (
            f"warning: {data} is the training file of {run}: the scores say how well the model remembers its "
            "rows, not how it answers new ones"
        )
    if config.task.dev in same:
        return f"note: {data} is the dev file of {run}, by which the model was chosen: new rows are harder"
    return None
