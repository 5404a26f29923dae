"""Tiny models and tokenizers for tests, and the folders they are saved in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from bertcli.config.task import TaskSettings
from bertcli.families.family import HeadKind
from bertcli.folders.model_files import Declaration, write_model_files
from bertcli.folders.model_folder import save_model_folder
from bertcli.folders.sentence_transformers import SentencePooling, write_pooling
from bertcli.folders.task_folder import declare_task
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import PretrainingModel
from bertcli.model.task_models import PooledModel, TaskModel, VectorModel, build_task_model
from bertcli.tasks.supervised import task_class
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.wordpieces import wordpiece

Model = TypeVar("Model", bound=nn.Module)

WORDS = """
[PAD] [UNK] [CLS] [SEP] [MASK] the a cat dog sat on mat ran house dark was of night ##s ##ing ##ed
. , ! ? [ ] mask sep c l s he she it and in
""".split()  # noqa: SIM905
ODD = Architecture(
    vocab_size=len(WORDS),
    hidden=15,
    layers=2,
    heads=5,
    feed_forward=23,
    max_positions=19,
    init_std=0.4,
)
"""Every axis its own size, and weights large enough to make every error seen."""


def tiny_tokenizer() -> Tokenizer:
    return wordpiece(WORDS)


def random_model(seed: int = 0, nsp: bool = True, **changes: object) -> PretrainingModel:
    """A model none of whose parameters has its initial value of 0 or 1."""
    torch.manual_seed(seed)
    return stirred(PretrainingModel(replace(ODD, **changes), pair_head=nsp))  # pyright: ignore[reportArgumentType]


def stirred(model: Model) -> Model:
    """`model`, none of whose parameters has its initial value of 0 or 1 any more."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.normal_(1.0 if "norm.weight" in name else 0.0, 0.3)
    return model.eval()


def save_encoder(folder: Path, model: PooledModel, tokenizer: Tokenizer) -> None:
    """As a folder of the encoder alone, with its pooler if it has one."""
    write_model_files(folder, model, tokenizer, Declaration("encoder"))


def saved_model(folder: Path, seed: int = 0, nsp: bool = True) -> PretrainingModel:
    model = random_model(seed, nsp)
    save_model_folder(folder, model, tiny_tokenizer())
    return model


SETTINGS: dict[str, TaskSettings] = {
    "classification": TaskSettings(type="classification", text=["premise", "hypothesis"], label="gold"),
    "multi-label": TaskSettings(type="classification", text="text", multi_label=True),
    "regression": TaskSettings(type="regression", text=["a", "b"], max_length=17),
    "tokens": TaskSettings(type="token-classification", doc_stride=8),
    "questions": TaskSettings(type="question-answering"),
    "choices": TaskSettings(type="multiple-choice", text="story", choices=["one", "two"]),
}
"""A task of every kind that a folder can hold."""
LABELS = {
    "classification": ("no", "yes", "maybe: é"),
    "multi-label": ("red", "green", "blue", "gray"),
    "tokens": ("O", "B-LOC", "I-LOC"),
}
"""The others have none."""


def head_of(kind: str) -> HeadKind:
    """The head for a task of `SETTINGS`."""
    head = task_class(SETTINGS[kind].type).head
    assert head is not None
    return head


def saved_task(folder: Path, kind: str, seed: int = 0, **changes: object) -> TaskModel:
    """A random model for a task of `SETTINGS`, saved with its labels."""
    torch.manual_seed(seed)
    settings, labels = SETTINGS[kind], LABELS.get(kind, ())
    architecture = replace(ODD, **changes)  # pyright: ignore[reportArgumentType]
    model = stirred(build_task_model(head_of(kind), architecture, len(labels) or 1))
    write_model_files(folder, model, tiny_tokenizer(), declare_task(settings, labels))
    return model


def saved_vectors(folder: Path) -> VectorModel:
    """A random model of sentence vectors, as `bertcli finetune` saves one."""
    torch.manual_seed(0)
    settings = TaskSettings(type="sentence-embedding", max_length=16)
    model = stirred(VectorModel(ODD))
    write_model_files(folder, model, tiny_tokenizer(), declare_task(settings, ()))
    write_pooling(folder, SentencePooling("mean", False, settings.max_length), model.architecture.hidden)
    return model


def change_config(folder: Path, **changes: object) -> None:
    """Other values in `config.json`; a key with the value "absent" goes."""
    config = json.loads((folder / "config.json").read_text()) | changes
    config = {key: value for key, value in config.items() if value != "absent"}
    (folder / "config.json").write_text(json.dumps(config))


def rewrite(folder, change, to="model.safetensors"):
    """Replace the weights by `change` of them, in a file of the name `to`."""
    weights = load_file(folder / "model.safetensors")
    weights = {name: value.clone() for name, value in weights.items()}
    (folder / "model.safetensors").unlink()
    weights = change(weights)
    if to.endswith(".bin"):
        torch.save(weights, folder / to)
    else:
        save_file(weights, folder / to)


def without(*prefixes):
    return lambda weights: {name: value for name, value in weights.items() if not name.startswith(prefixes)}


def renamed(old, new):
    return lambda weights: {name.replace(old, new): value for name, value in weights.items()}


def added(**new):
    return lambda weights: weights | {name.replace("__", "."): value for name, value in new.items()}
