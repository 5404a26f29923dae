"""The labeled files of a fine-tuning run: rows, labels, lengths, findings, and answers on the dev data."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import torch

from bertcli.advice.check.findings import worst_first
from bertcli.advice.check.finetuning import LabeledCheck
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.run import with_values
from bertcli.config.task import TaskSettings
from bertcli.folders.task_folder import LoadedTask, load_task_folder
from bertcli.inference.attributions import attribute, decide
from bertcli.inference.predict import Runner, runner_of
from bertcli.reports.attention import ScoredWord, scored_words
from bertcli.reports.page import SMALL
from bertcli.system.errors import Finding, UserError
from bertcli.system.terminal import percent, short
from bertcli.tasks.data import divided
from bertcli.tasks.examples import Example
from bertcli.tasks.files import find_labeled_file, read_examples
from bertcli.tasks.labels import check_labels, spelled_as
from bertcli.tasks.shown import Mistake, Prediction
from bertcli.tasks.supervised import LabeledTask, build_task

MOST_LABELS = 30
_LONGEST = 40


@dataclass(frozen=True)
class LabeledFigures:
    """The figures and findings of `bertcli check-data` on the files.

    Attributes:
        figures: the result of `tasks.data_report.figures`.
        labels: the most frequent labels: the name, and for each split the number and share of the rows that
            have it; empty for numbers.
        left_out: the number of labels that are not listed.
    """

    figures: Mapping[str, Any]
    labels: Sequence[tuple[str, Sequence[tuple[int, float]]]]
    left_out: int
    findings: Sequence[Finding]


def labeled_figures(config: FinetuneConfig, folder: Path, asked: bool) -> LabeledFigures:
    """Read the labeled files again.

    Args:
        folder: the folder of the run's model, whose tokenizer measures the rows.
        asked: read large files too.

    Raises:
        UserError: the files are gone, or they are large and `asked` is False.
    """
    names = [name for name in (config.task.train, config.task.dev) if name is not None]
    size = sum(find_labeled_file(name).stat().st_size for name in names)
    if size > SMALL and not asked:
        raise UserError(f"the files have {size / 1e6:,.0f} MB; --check-data reads them again")
    check = LabeledCheck(with_values(config, {"model": str(folder)}))
    if not check.figures:
        raise UserError(worst_first(check.findings)[0].problem if check.findings else "no rows")
    counts = list(check.figures.get("counts", {}).values())
    all_labels = list(dict.fromkeys(label for each in counts for label in each))
    labels = [
        (
            short(label, _LONGEST),
            [(each.get(label, 0), each.get(label, 0) / max(1, sum(each.values()))) for each in counts],
        )
        for label in all_labels[:MOST_LABELS]
    ]
    folders = {f"{find_labeled_file(name).parent}/" for name in names}
    findings = [_without(folders, each) for each in worst_first(check.findings)]
    left_out = len(all_labels) - len(labels)
    return LabeledFigures(check.figures, labels, left_out, findings=findings)


def _without(folders: set[str], finding: Finding) -> Finding:
    """The finding, with file names in place of paths."""
    problem, places = finding.problem, list(finding.places)
    for folder in folders:
        problem, places = problem.replace(folder, ""), [place.replace(folder, "") for place in places]
    return replace(finding, problem=problem, places=tuple(places))


MOST_ROWS = 5_000
MOST_SECONDS = 60.0
"""Time limit for the answers; the report then uses the rows answered so far."""
_AT_ONCE = 64
"""Number of examples between two checks of the time."""


@dataclass(frozen=True)
class DevAnswers:
    """Rows of the dev data with the answers of a model, in the order of the file.

    Attributes:
        runner: the model that answered.
        rows: the number of rows in the dev data; `examples` has fewer if there was no time for all.
        metrics: the metrics of the answered rows.
    """

    runner: Runner
    task: LabeledTask
    examples: Sequence[Any]
    predictions: Sequence[Prediction]
    rows: int
    metrics: Mapping[str, Any]

    @property
    def wrong(self) -> list[int]:
        """The indices of the rows with a wrong answer."""
        pairs = zip(self.examples, self.predictions, strict=True)
        return [i for i, (example, answer) in enumerate(pairs) if not self.task.is_right(example, answer)]


def answer_dev(
    config: FinetuneConfig, folder: Path, device: torch.device, most: int = MOST_ROWS
) -> DevAnswers | None:
    """Answer the dev data, or `most` random rows of it that are always the same; None: there is no dev data.

    Raises:
        UserError: the model or the data is missing or cannot be read.
    """
    if not (config.task.has_dev or config.fold):
        return None
    loaded = load_task_folder(folder)
    examples = _dev_examples(config, loaded)
    examples = spelled_as(examples, loaded.labels)
    check_labels(examples, loaded.labels, loaded.settings)
    runner = runner_of(loaded, device)
    task = runner.task
    order = np.random.default_rng(0).permutation(len(examples))[:most].tolist()
    start, answers = time.monotonic(), dict[int, Prediction]()
    for first in range(0, len(order), _AT_ONCE):
        some = order[first : first + _AT_ONCE]
        rows = [examples[i] for i in some]
        answers.update(zip(some, runner.predict(rows, task.encode(rows, loaded.tokenizer)), strict=True))
        if time.monotonic() - start > MOST_SECONDS * most / MOST_ROWS:
            break
    chosen = sorted(answers)
    answered, predictions = [examples[i] for i in chosen], task.join([answers[i] for i in chosen])[1]
    metrics = task.score(answered, predictions)
    return DevAnswers(runner, task, answered, predictions=predictions, rows=len(examples), metrics=metrics)


def _dev_examples(config: FinetuneConfig, loaded: LoadedTask) -> Sequence[Example]:
    """The rows that the run was evaluated on. Raises `UserError` if they cannot be read."""
    task, settings = config.task, loaded.settings
    file = find_labeled_file(task.dev or task.train)
    rows = read_examples(file, settings, True, skip_bad=task.skip_bad, tokenizer=loaded.tokenizer)
    examples = list(rows)
    return examples if task.dev is not None else divided(examples, config)[1] or []


def joined_answers(folds: Sequence[DevAnswers], kept: TaskSettings) -> DevAnswers:
    """The answers of the models of several folds as those of one; the model is that of the first.

    They have the temperature and the thresholds of `kept`, the settings of the final model.
    """
    task = build_task(kept, folds[0].task.labels)
    examples = [example for fold in folds for example in fold.examples]
    predictions: list[Prediction] = []
    for fold in folds:
        before, after = fold.task.settings.temperature, kept.temperature
        ratio = after / before if isinstance(before, float) and isinstance(after, float) else None
        predictions += task.settled(fold.predictions, kept.model_copy(update={"temperature": ratio}))
    return replace(
        folds[0],
        task=task,
        examples=examples,
        predictions=predictions,
        rows=sum(fold.rows for fold in folds),
        metrics=task.score(examples, predictions),
    )


MOST_MISTAKES = 50
_EXPLAINED, _WORDS = 20, 80
"""Number of explained mistakes, each some thirty forward and backward passes, and of words shown for each."""
LONGEST_TEXT = 400
"""Largest number of characters of a text whose label is doubted."""
_LONGEST_NAME = 80
"""Largest number of characters of an answer or a place."""


@dataclass(frozen=True)
class Explanation:
    """The words of a row with their scores. `is_complete`: the scores add up to the output.

    `answer`: the answer that the scores explain, as `inference.attributions` names it.
    """

    answer: str
    words: Sequence[ScoredWord]
    is_complete: bool


@dataclass(frozen=True)
class WrongRow:
    """A row with a wrong answer.

    Attributes:
        where: the place in the file; the file is named without its folder.
        mistake: the mistake, with answers that are cut, and always with a score if it is known.
        explanation: what each word adds to the output for the answer; None: not asked for, or no word.
    """

    where: str
    mistake: Mistake
    explanation: Explanation | None = None


def wrong_rows(answers: DevAnswers, explain: bool) -> list[WrongRow]:
    """The rows whose mistakes have the highest sureness; the first few have an explanation if `explain`."""
    examples = answers.examples
    found = [(answers.task.mistake(examples[i], answers.predictions[i], examples), i) for i in answers.wrong]
    found.sort(key=lambda each: -each[0].sureness)
    rows = []
    for place, (mistake, i) in enumerate(found[:MOST_MISTAKES]):
        path, comma, rest = examples[i].where.partition(", ")
        right, given = (short(each, _LONGEST_NAME) for each in (mistake.right, mistake.given))
        score = mistake.score or (percent(mistake.sureness) if mistake.sureness else "")
        rows.append(
            WrongRow(
                short(f"{PurePath(path).name}{comma}{rest}", _LONGEST_NAME),
                replace(mistake, right=right, given=given, score=score),
                _explanation(answers.runner, examples[i]) if explain and place < _EXPLAINED else None,
            )
        )
    return rows


def _explanation(runner: Runner, example: Example) -> Explanation | None:
    try:
        found = attribute(runner, decide(runner, example))
    except UserError:  # the row has no word
        return None
    return Explanation(short(found.answer, _LONGEST_NAME), scored_words(found)[:_WORDS], found.is_complete)
