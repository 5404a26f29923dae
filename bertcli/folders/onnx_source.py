"""The MODEL of `bertcli export` -> the model, with what is needed to write and to compare it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from torch import nn

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_either_config
from bertcli.config.task import TaskSettings
from bertcli.corpus.matching import store_folder
from bertcli.corpus.token_store import open_store
from bertcli.folders.convert import with_heads
from bertcli.folders.locate import resolve_model
from bertcli.folders.model_files import Declaration, read_model_files
from bertcli.folders.onnx_graph import ExportedModel
from bertcli.folders.run_layout import RunLayout, run_of_model
from bertcli.folders.sentence_transformers import PLAIN, SentencePooling, read_pooling
from bertcli.folders.task_folder import read_task, task_type
from bertcli.inference.inputs import adapt_settings, example_of, read_inputs
from bertcli.system.errors import UserError
from bertcli.system.terminal import say
from bertcli.tasks.examples import Example
from bertcli.tasks.files import find_labeled_file, read_examples, settings_of_texts
from bertcli.tasks.supervised import build_task, task_class
from bertcli.tokenizer.frame import Row
from bertcli.tokenizer.tokenizer import Tokenizer

MOST_BYTES = 2_000_000_000
"""Most bytes of the weights in one ONNX file, whose format ends at 2 GiB."""


@dataclass(frozen=True)
class Source:
    """A model to export, in evaluation mode.

    Attributes:
        folder: the folder that it was read from.
        declared: the declaration for its `config.json`.
        settings, labels: the settings and labels of its task; None and empty if it has none.
        pooling: the pooling of its vectors.
    """

    folder: Path
    exported: ExportedModel
    declared: Declaration
    tokenizer: Tokenizer
    settings: TaskSettings | None
    labels: tuple[str, ...]
    pooling: SentencePooling

    @property
    def model(self) -> Any:
        """The model, with the interface of `model.task_models`."""
        return self.exported.model

    def rows(self, examples: Sequence[Example]) -> list[Row]:
        """The rows that the model reads of the examples."""
        if self.settings is not None:
            task = build_task(self.settings, self.labels)
            placed = list(task.at_words(examples, self.settings, self.tokenizer))
            items = task.encode(placed, self.tokenizer)
            return [row for item in items for row in item.rows]
        encoded = self.tokenizer.encode_batch([example.texts[0] for example in examples])
        longest = self.pooling.max_length or self.exported.architecture.usable_positions
        return [self.tokenizer.frame.fit(ids, None, longest) for ids in encoded]


def read_source(model: Path, encoder_alone: bool) -> Source:
    """Read the model to export. A folder of sentence-transformers gives its encoder, whatever heads it has.

    Raises `UserError` as `resolve_model` and `read_model_files`; also for weights that one file cannot hold.
    """
    folder = resolve_model(model)
    pooling = read_pooling(folder)  # refuses a folder whose sentence vectors bertcli could not compute
    files = read_model_files(folder)
    alone = encoder_alone or pooling is not None
    read = with_heads(files, encoder_alone=alone)
    size = weight_bytes(read.model)
    if size > MOST_BYTES:
        raise UserError(
            f"{folder}: its weights take {size / 1e9:.1f} GB, and an ONNX file holds at most 2 GB; export a "
            "smaller model (a section `distillation` makes one from this)"
        )
    settings, labels = None, ()
    if not alone and task_type(files.config, files.family) is not None:
        settings, labels = read_task(folder, files.config, files.architecture)
    return Source(
        folder,
        ExportedModel(read.model, read.declared.kind).eval(),
        read.declared,
        tokenizer=files.tokenizer,
        settings=settings,
        labels=labels,
        pooling=pooling or PLAIN,
    )


def weight_bytes(model: nn.Module) -> int:
    """The bytes of the parameters, each counted once."""
    return sum(parameter.nbytes for parameter in model.parameters())


MOST = 1000
"""Most rows of the user's file that are read."""
_BUNDLED, _NUM_BUNDLED = "sms-spam", 256
NO_TASK = settings_of_texts()
"""Settings for the file of a model without a task: one column of text."""


def read_sample(
    file: str | None, settings: TaskSettings | None, text: Sequence[str] | None, folder: Path
) -> list[Example]:
    """The first rows of `file`, at most `MOST`, read as `bertcli predict --input` does; without a file, text
    of the run that made the model in `folder`, or bundled English messages where it has none.

    Args:
        settings: the settings of the task; None if the model has none.
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
        texts = [row.texts[0] for row in islice(rows, _NUM_BUNDLED)]
    task = task_class(settings.type)
    size = task.num_texts(settings) + 2 * task.has_choices
    groups = ([*texts[at:], *texts][:size] for at in range(len(texts)))
    return [example_of(group, _BUNDLED, settings) for group in groups]


def _texts_of_run(folder: Path) -> list[str]:
    """Texts of the run's dev or training file, or sentences of its store; empty if they are gone."""
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
