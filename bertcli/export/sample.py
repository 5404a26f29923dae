"""The texts on which two forms of a model are compared: the user's, or bundled ones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from bertcli.config.either import load_either_config
from bertcli.config.finetune import FinetuneConfig, TaskSettings
from bertcli.errors import UserError
from bertcli.examples.examples import Example
from bertcli.examples.files import find_labeled_file, read_examples
from bertcli.inference.inputs import adapt_settings, example_of, num_texts, read_inputs
from bertcli.owned.run_layout import RunLayout, run_of_model
from bertcli.store.matching import store_folder
from bertcli.store.token_store import open_store
from bertcli.terminal import say

MOST = 1000
"""Rows of the user's file that are read."""
_BUNDLED, _NUM_BUNDLED = "sms-spam", 256
NO_TASK = TaskSettings(type="classification", text="text")
"""How a file is read for a model without a task: one column of text."""


def read_sample(
    file: str | None, settings: TaskSettings | None, text: Sequence[str] | None, folder: Path
) -> list[Example]:
    """At most `MOST` rows of `file`, read as `bertcli predict --input` does; without a file, text of the run
    that made the model in `folder`, or bundled English messages where it has none.

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
    texts = _texts_of_run(folder)
    if not texts:
        say("int8 is compared on bundled English messages; name texts of your own with --sample FILE")
        path = find_labeled_file(_BUNDLED)
        rows = read_examples(path, adapt_settings(NO_TASK, ["message"]), labeled=False)
        texts = [row.text_a for row in islice(rows, _NUM_BUNDLED)]
    size = num_texts(settings) + (2 if settings.type == "multiple-choice" else 0)
    groups = ([*texts[at:], *texts][:size] for at in range(len(texts)))
    return [example_of(group, _BUNDLED, settings) for group in groups]


def _texts_of_run(folder: Path) -> list[str]:
    """Of its dev or training file, or sentences of its store; none where they are gone."""
    run = run_of_model(folder)
    if run is None or not (path := RunLayout(run).config).is_file():
        return []
    try:
        config = load_either_config(path)
        if isinstance(config, FinetuneConfig):
            labeled = find_labeled_file(config.task.dev or config.task.train)
            rows = read_examples(labeled, config.task.settings, labeled=True, skip_bad=True)
            texts = [text for row in islice(rows, _NUM_BUNDLED) for text in row.texts]
        else:
            store = open_store(store_folder(config))
            side = store.heldout if store.heldout.num_documents else store.train
            places = range(0, side.num_sentences, max(1, side.num_sentences // _NUM_BUNDLED))
            spans = [(int(side.sentences[at]), int(side.sentences[at + 1])) for at in places]
            texts = [store.tokenizer.decode(side.ids[start:end].tolist()) for start, end in spans]
    except (UserError, OSError):
        return []
    say(f"int8 is compared on text of {run}")
    return [text for text in texts if text.strip()][:_NUM_BUNDLED]
