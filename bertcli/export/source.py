"""The MODEL of `bertcli export` -> the model, with what is needed to write and to compare it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.examples.examples import Example
from bertcli.export.graph import ExportedModel
from bertcli.hf.locate import resolve_model
from bertcli.hf.model_files import Declaration, read_model_files
from bertcli.hf.sentence_transformers import PLAIN, SentencePooling, read_pooling
from bertcli.hf.task_config import read_task, task_type
from bertcli.hf.with_heads import with_heads, without_heads
from bertcli.tasks.registry import build_task
from bertcli.text.frame import Row
from bertcli.text.tokenizer import Tokenizer

MOST_BYTES = 2_000_000_000
"""Of the weights in one ONNX file, whose format ends at 2 GiB."""


@dataclass(frozen=True)
class Source:
    """A model to export, in evaluation mode.

    Attributes:
        folder: where it was read.
        declared: for its `config.json`.
        settings, labels: of its task; None and empty: it has none.
        pooling: of its vectors.
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
        """With the interface of `model.task_models`."""
        return self.exported.model

    def rows(self, examples: Sequence[Example]) -> list[Row]:
        """What the model reads of the examples."""
        if self.settings is not None:
            items = build_task(self.settings, self.labels).encode(examples, self.tokenizer)
            return [row for item in items for row in item.rows]
        encoded = self.tokenizer.encode_batch([example.texts[0] for example in examples])
        longest = self.pooling.max_length or self.exported.architecture.usable_positions
        return [self.tokenizer.frame.fit(ids, None, longest) for ids in encoded]


def read_source(model: Path, encoder_alone: bool) -> Source:
    """Read what is to be exported. A folder of sentence-transformers is the encoder, whatever heads it has.

    Raises `UserError` as `resolve_model` and `read_model_files`; also for weights that one file cannot hold.
    """
    folder = resolve_model(model)
    pooling = read_pooling(folder)  # refuses a folder whose sentence vectors bertcli could not compute
    files = read_model_files(folder)
    alone = encoder_alone or pooling is not None
    read = without_heads(files) if alone else with_heads(files)
    size = weight_bytes(read.model)
    if size > MOST_BYTES:
        raise UserError(
            f"{folder}: its weights take {size / 1e9:.1f} GB, and an ONNX file holds at most 2 GB; export a "
            "smaller model (a section `distillation` makes one from this)"
        )
    settings, labels = None, ()
    if not alone and task_type(files.config, files.family) is not None:
        where, positions = folder / "config.json", files.architecture.usable_positions
        settings, labels = read_task(files.config, files.family, positions, where=where)
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
    """Of the parameters, each once."""
    return sum(parameter.nbytes for parameter in model.parameters())
