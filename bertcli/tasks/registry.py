"""The labeled tasks by name: whoever adds one writes its unit, and one line here."""

from pkgutil import resolve_name
from typing import Any, Protocol

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


class ConfiguredTask(Protocol):
    """What a config asks of the class of a task: a part of `facts.TaskFacts`, whose files read configs."""

    keys: tuple[str, ...]
    formats: tuple[str, ...]
    names_columns: bool
    head: str | None
    in_windows: bool

    def usual_settings(self, values: dict[str, Any]) -> dict[str, Any]: ...
    def check_settings(self, settings: Any) -> None: ...
    def has_answers(self, settings: Any) -> bool: ...


def import_task(type: str) -> ConfiguredTask:
    """The class of a task; `type` is a key of `TASKS`."""
    return resolve_name(TASKS[type])
