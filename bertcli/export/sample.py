"""The texts on which two forms of a model are compared: the user's, or bundled ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.examples.examples import Example
from bertcli.examples.files import find_labeled_file, read_examples
from bertcli.inference.inputs import adapt_settings, example_of, num_texts, read_inputs
from bertcli.terminal import say

MOST = 1000
"""Rows of the user's file that are read."""
_BUNDLED, _NUM_BUNDLED = "sms-spam", 256
NO_TASK = TaskSettings(type="classification", text="text")
"""How a file is read for a model without a task: one column of text."""


def read_sample(file: str | None, settings: TaskSettings | None, text: Sequence[str] | None) -> list[Example]:
    """At most `MOST` rows of `file`, read as `bertcli predict --input` does; without a file bundled messages.

    Args:
        settings: of the task; None: the model has none.
        text: the columns of text, in place of the model's own.

    Raises `UserError` as `read_inputs` does, and for columns without a file.
    """
    if file is None and text:
        raise UserError("--text names a column of --sample FILE; give that too")
    settings = adapt_settings(settings or NO_TASK, text)
    if file is not None:
        return list(islice(read_inputs([], file, settings, report=say), MOST))
    path = find_labeled_file(_BUNDLED)
    rows = read_examples(path, adapt_settings(NO_TASK, ["message"]), labeled=False)
    texts = [row.text_a for row in islice(rows, _NUM_BUNDLED)]
    size = num_texts(settings) + (2 if settings.type == "multiple-choice" else 0)
    groups = ([*texts[at:], *texts][:size] for at in range(len(texts)))
    return [example_of(group, _BUNDLED, settings) for group in groups]
