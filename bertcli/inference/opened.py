"""The MODEL of `predict` and `embed` -> a model that computes, from weights or from an ONNX file."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from bertcli.folders.config_file import read_architecture
from bertcli.folders.locate import find_onnx, resolve_model
from bertcli.folders.model_folder import load_encoder_folder
from bertcli.folders.sentence_transformers import PLAIN, read_pooling
from bertcli.folders.task_folder import load_task_folder, read_task, refuse_vectors, vector_settings
from bertcli.inference.onnx_model import HIDDEN, LOGITS, SPANS, OnnxModel
from bertcli.inference.predict import Runner, default_batch_size, runner_of
from bertcli.inference.vectors import Embedder
from bertcli.system.errors import UserError
from bertcli.system.formats import read_json
from bertcli.system.hardware import Precision, resolve_device, resolve_precision
from bertcli.tasks.supervised import build_task, task_class
from bertcli.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class Compute:
    """What the user asked to compute with, as options or as arguments of `bertcli.load`."""

    device: str
    precision: Literal["auto"] | Precision

    def of_weights(self) -> tuple[torch.device, Precision]:
        """The device and the precision for weights. Raises `UserError` for a device that is not there."""
        device = resolve_device(self.device)
        return device, resolve_precision(self.precision, device)

    def of_onnx(self, file: Path) -> tuple[torch.device, Precision]:
        """The CPU in the file's own precision; raises `UserError` if another one was named."""
        if self.device not in ("auto", "cpu"):
            raise UserError(f"device {self.device}: {file} is run on the CPU; leave it out")
        if self.precision not in ("auto", "fp32"):
            raise UserError(f"precision {self.precision}: {file} has a precision of its own; leave it out")
        return torch.device("cpu"), "fp32"


def open_task(model: Path, compute: Compute) -> tuple[Runner, Path]:
    """Open a fine-tuned model. Return it with the folder of its `config.json` and tokenizer.

    Raises `UserError` for a model of vectors, and as `resolve_model`, `load_task_folder`, `OnnxModel` and
    `Compute`.
    """
    place = find_onnx(model)
    if place is None:
        device, precision = compute.of_weights()
        loaded = load_task_folder(resolve_model(model))
        refuse_vectors(loaded.settings.type, loaded.folder)
        return replace(runner_of(loaded, device), precision=precision), loaded.folder
    folder, (device, precision) = place.folder, compute.of_onnx(place.file)
    architecture = read_architecture(folder / "config.json")
    settings, labels = read_task(folder, read_json(folder / "config.json"), architecture)
    refuse_vectors(settings.type, folder)
    onnx = OnnxModel(place.file, architecture)
    onnx.need(*(SPANS if task_class(settings.type).head == "spans" else [LOGITS]))
    task, tokenizer = build_task(settings.closed, labels), Tokenizer.load(folder)
    size = default_batch_size(device)
    return Runner(onnx, task, tokenizer, device=device, precision=precision, batch_size=size), folder


def open_encoder(model: Path, compute: Compute) -> tuple[Embedder, Path]:
    """Open an encoder that gives vectors as its folder says, else the mean, not normalized. Return it with
    the folder of its `config.json` and tokenizer.

    Raises `UserError` for a folder of sentence-transformers that is not supported, and as `resolve_model`,
    `load_encoder_folder`, `OnnxModel` and `Compute`.
    """
    place = find_onnx(model)
    if place is None:
        folder, (device, precision) = resolve_model(model), compute.of_weights()
        loaded, tokenizer = load_encoder_folder(folder)
        encoder = loaded.to(device).eval()
    else:
        folder, (device, precision) = place.folder, compute.of_onnx(place.file)
        tokenizer = Tokenizer.load(folder)
        encoder = OnnxModel(place.file, read_architecture(folder / "config.json"))
        encoder.need(HIDDEN)
    pooling, size = read_pooling(folder) or PLAIN, default_batch_size(device)
    if (settings := vector_settings(folder)) is not None:
        pooling = pooling.reading_as(settings)
    embedder = Embedder(encoder, tokenizer, pooling, device=device, precision=precision, batch_size=size)
    return embedder, folder
