"""The README.md of a fine-tuned model: its data, recipe, scores and use."""

from __future__ import annotations

from pathlib import Path

from bertcli.cards.markdown import front_matter, plain, public_name
from bertcli.config.finetune import FinetuneConfig
from bertcli.evaluation.evaluate import Scores
from bertcli.evaluation.task_verdict import Verdict
from bertcli.families.registry import FAMILIES
from bertcli.model.architecture import Architecture
from bertcli.tasks.data import LabeledData

_PIPELINES = {
    "classification": "text-classification",
    "regression": "text-classification",
    "token-classification": "token-classification",
    "question-answering": "question-answering",
    "multiple-choice": "multiple-choice",
    "sentence-embedding": "sentence-similarity",
}
"""Task -> its name on model hubs."""
_LISTED = 50
"""Maximum number of labels in the card."""


def task_card(
    config: FinetuneConfig,
    architecture: Architecture,
    data: LabeledData,
    scores: Scores | None,
    verdict: Verdict | None,
) -> str:
    """The card, as Markdown with the front matter that model hubs read."""
    task, training, family = config.task, config.training, FAMILIES[architecture.family]
    train, dev = plain(Path(task.train).name), "none"
    if data.dev is not None:
        source = f"of {train}, split off" if task.dev is None else f"of {plain(Path(task.dev).name)}"
        dev = f"{len(data.dev.examples):,} rows {source}"
    more = [f"and {len(data.task.labels) - _LISTED:,} more"] if len(data.task.labels) > _LISTED else []
    names = ", ".join([*map(plain, data.task.labels[:_LISTED]), *more])
    labels = f"| labels | {names} |\n" if names else ""
    head = {
        "library_name": "transformers",
        "pipeline_tag": _PIPELINES[task.type],
        "tags": [family.model_type, "bertcli"],
    }
    return f"""{front_matter(head)}

# {task.type.capitalize()} by {family.a_name} of {architecture.layers} layers x {architecture.hidden}

Fine-tuned with bertcli from {plain(public_name(config.model))}.

## Data

| | |
|---|---|
| trained on | {len(data.train.examples):,} rows of {train} |
| evaluated on | {dev} |
{labels}
## Recipe

| | |
|---|---|
| epochs | {training.epochs:g}, {training.batch_size} rows a step, at most {task.max_length} tokens a row |
| learning rate | {training.learning_rate:g}, {training.schedule}, warm-up over {training.warmup_ratio:.0%} |
| AdamW | betas {training.betas[0]:g} and {training.betas[1]:g}, weight decay {training.weight_decay:g} |
| precision | {training.precision} |
{_student(config)}| seed | {config.training_seed} |

The complete config is in the run folder's `config.yaml`.

## Scores on the dev data

{_scores(scores, verdict)}

## Use

```sh
bertcli predict . TEXT
bertcli predict . --input FILE
```
"""


def _student(config: FinetuneConfig) -> str:
    """Rows of the table about kept layers and a teacher, a line each."""
    kept, taught = config.training.keep_layers, config.distillation
    rows = f"| layers | {kept} of the model's |\n" if kept else ""
    if taught is None:
        return rows
    answers, labels = taught.weights
    teacher = plain(public_name(taught.teacher))
    return rows + (
        f"| teacher | {teacher}, temperature {taught.temperature:g}; weights: its answers {answers:g}, "
        f"labels {labels:g} |\n"
    )


def _scores(scores: Scores | None, verdict: Verdict | None) -> str:
    if scores is None or verdict is None:
        return "None were measured: there was no dev data."
    rows = [f"| {plain(scores.title(name))} | {value:.4f} |" for name, value in scores.numbers.items()]
    beside = plain(f"{verdict.text[0].upper()}{verdict.text[1:]}.")
    return "\n".join([beside, "", "| metric | value |", "|---|---|", f"| loss | {scores.loss:.4f} |", *rows])
