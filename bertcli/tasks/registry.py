"""The labeled tasks by name: whoever adds one writes its unit, and one line here."""

from pkgutil import resolve_name
from typing import Any

TASKS = {
    "classification": "bertcli.tasks.classification:Classification",
    "regression": "bertcli.tasks.regression:Regression",
    "sentence-embedding": "bertcli.tasks.sentence_embedding:SentenceEmbedding",
    "question-answering": "bertcli.tasks.question_answering:QuestionAnswering",
    "multiple-choice": "bertcli.tasks.multiple_choice:MultipleChoice",
    "token-classification": "bertcli.tasks.token_classification:TokenClassification",
}
"""The value of `task.type` -> module and class of the task. A task is imported when it is first used, because
its module needs torch, and the names alone do not. `init` asks the last one first whether a file is its own:
a task with files of a more particular form stands below the others."""


def import_task(type: str) -> Any:
    """The class of a task, a `tasks.supervised.LabeledTask`; `type` is a key of `TASKS`."""
    return resolve_name(TASKS[type])
