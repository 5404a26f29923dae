"""A fine-tuned model and a labeled file -> its loss and metrics, and the rows with wrong answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bertcli.config.finetune import FinetuneConfig, TaskSettings
from bertcli.config.load import load_config
from bertcli.errors import UserError
from bertcli.evaluation.evaluate import Scores
from bertcli.evaluation.task import evaluate_task
from bertcli.examples.examples import (
    ChoiceExample,
    Example,
    QuestionExample,
    SimilarExample,
    TaggedExample,
    TextExample,
)
from bertcli.examples.files import read_examples
from bertcli.examples.labels import check_labels, spelled_as
from bertcli.files import file_hash, plain_text
from bertcli.hf.lengths import LongRows
from bertcli.hf.task_folder import LoadedTask
from bertcli.inference.examples import Runner
from bertcli.inference.formats import beside
from bertcli.inference.outputs import cut_line
from bertcli.owned.run_layout import RunLayout, run_of_model
from bertcli.tasks.data import Split
from bertcli.tasks.registry import build_task
from bertcli.tasks.supervised import LabeledTask, Prediction


@dataclass(frozen=True)
class EvaluatedFile:
    """The answers to the examples of a labeled file, in order, and their scores."""

    task: LabeledTask
    settings: TaskSettings
    examples: Sequence[Example]
    predictions: Sequence[Prediction]
    scores: Scores

    def wrong_cases(self) -> Iterator[dict[str, Any]]:
        """For each row with a wrong answer: its place and columns, the prediction and the right answer."""
        for example, prediction in zip(self.examples, self.predictions, strict=True):
            if not self.task.is_right(example, prediction):
                yield {
                    "where": example.where,
                    "columns": beside(example.columns, {}),
                    "prediction": prediction.as_json(),
                    "right": right_answer(example),
                }


def evaluate_file(
    loaded: LoadedTask,
    settings: TaskSettings,
    data: Path,
    skip_bad: bool,
    device: torch.device,
    batch_size: int,
    report: Callable[[str], None],
) -> EvaluatedFile:
    """Answer every row of `data` in fp32, and score the answers.

    Args:
        settings: the model's own, or adapted to the file (`inference.inputs.adapt_settings`).
        skip_bad: leave out rows that cannot be used, and report them.

    Raises:
        UserError: the file cannot be read with these settings, or has labels that the model does not have;
            nothing says what is right.
    """
    if settings.is_plain_text:
        raise UserError(
            f"{data}: plain text has no right answers to evaluate by; name the columns of pairs: --text A "
            "--text B (and of their score, if there is one: --label C)"
        )
    examples = list(read_examples(data, settings, True, skip_bad=skip_bad, report=report, note=report))
    examples = spelled_as(examples, loaded.labels)
    check_labels(examples, loaded.labels, settings)
    task = build_task(settings, loaded.labels)
    items = task.encode(examples, loaded.tokenizer)
    long_rows = LongRows(loaded.folder)
    long_rows.count(item.length for item in items)
    long_rows.tell()
    cut = len({item.example for item in items if item.dropped})
    if cut:
        report(cut_line(cut, len(examples)))
    runner = Runner(
        model=loaded.model.to(device),
        task=task,
        pad_id=loaded.tokenizer.pad_id,
        device=device,
        precision="fp32",
        batch_size=batch_size,
    )
    scores, predictions = evaluate_task(runner, Split(examples, items))
    return EvaluatedFile(task, settings, examples, predictions=predictions, scores=scores)


def seen_line(folder: Path, data: Path) -> str | None:
    """A line if the run of a model folder learned from the file `data` or chose the model by it; or None."""
    run = run_of_model(folder)
    if run is None:
        return None
    layout = RunLayout(run)
    try:
        config = load_config(FinetuneConfig, layout.config)
        identity = next(
            each for each in (layout, *map(RunLayout, layout.seed_folders())) if each.data.is_file()
        )
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


def right_answer(example: Example) -> Any:
    """The right answer as JSON: label(s), number, tags, answers, number of the choice, or positive text."""
    if isinstance(example, TaggedExample):
        return list(example.tags or ())
    if isinstance(example, QuestionExample):
        return [answer.text for answer in example.answers or ()]
    if isinstance(example, SimilarExample):
        return example.texts[1] if example.score is None else example.score
    assert isinstance(example, TextExample | ChoiceExample)
    return list(example.label) if isinstance(example.label, tuple) else example.label
