"""What `bench predict` measures: a fine-tuned or a fresh model, and texts of mixed length."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from bertcli.config.finetune import TaskSettings
from bertcli.config.model import ModelConfig
from bertcli.config.schema import CorpusConfig, TokenizerConfig
from bertcli.errors import UserError
from bertcli.examples.files import find_labeled_file, read_examples
from bertcli.hf.locate import resolve_model
from bertcli.hf.new_model import new_architecture
from bertcli.hf.task_folder import load_task_folder, refuse_vectors
from bertcli.inference.inputs import read_inputs
from bertcli.model.task_models import build_task_model
from bertcli.store.vocabulary import train_on_corpus
from bertcli.text.sources import find_sources
from bertcli.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Answering:
    """A model with all that it needs to predict from text."""

    model: nn.Module
    tokenizer: Tokenizer
    settings: TaskSettings
    labels: tuple[str, ...]


def given_model(path: Path) -> Answering:
    """A fine-tuned model. Raises `UserError` as `hf.task_folder.load_task_folder` and `refuse_vectors`."""
    loaded = load_task_folder(resolve_model(path))
    refuse_vectors(loaded.settings.type, loaded.folder)
    return Answering(loaded.model, loaded.tokenizer, loaded.settings, labels=loaded.labels)


def fresh_model(preset: Any, vocab_size: int, max_length: int, report: Callable[[str], None]) -> Answering:
    """A classifier of two labels with random weights and a vocabulary from the bundled classics."""
    corpus = CorpusConfig(files=["classics"])
    options = TokenizerConfig(vocab_size=vocab_size, kind="wordpiece", lowercase=True)
    tokenizer = train_on_corpus(find_sources(corpus.files), corpus, options, report=report)
    config = ModelConfig(preset=preset, max_positions=max(512, max_length), dropout=0.1)
    sizes = new_architecture(config, tokenizer.vocab_size)
    settings = TaskSettings(type="classification", text="text", max_length=max_length)
    return Answering(build_task_model(settings.type, sizes, 2), tokenizer, settings, labels=("0", "1"))


def sample_messages(settings: TaskSettings) -> Iterator[Any]:
    """The bundled text messages as examples. Raises `UserError` for a task that reads more than one text."""
    if len(settings.text_columns) > 1 or settings.type in ("question-answering", "multiple-choice"):
        raise UserError(
            f"the bundled messages are single texts, but this model reads several ({settings.type}); give "
            "its rows: --input FILE"
        )
    columns = TaskSettings(type="classification", text="message")
    messages = read_examples(find_labeled_file("sms-spam"), columns, labeled=False, report=lambda line: None)
    return read_inputs([example.text_a for example in messages], None, settings, report=lambda line: None)
