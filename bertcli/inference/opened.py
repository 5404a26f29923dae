"""The MODEL of `predict` and `embed` -> a model that computes, from weights or from an ONNX file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from bertcli.config.task import TaskSettings
from bertcli.folders.config_file import read_architecture
from bertcli.folders.lengths import LongRows
from bertcli.folders.locate import OnnxPlace, find_onnx, resolve_model
from bertcli.folders.model_folder import load_encoder_folder
from bertcli.folders.sentence_transformers import PLAIN, SentencePooling, read_pooling
from bertcli.folders.task_folder import load_task_folder, read_task, refuse_vectors
from bertcli.inference.onnx_model import HIDDEN, LOGITS, SPANS, OnnxModel
from bertcli.inference.predict import Runner, default_batch_size
from bertcli.inference.vectors import Embedder
from bertcli.model.task_models import PooledModel
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


@dataclass(frozen=True)
class OpenedTask:
    """A fine-tuned model in evaluation mode on its device, with all that `predict_stream` needs.

    `folder` holds `config.json` and the tokenizer.
    """

    model: nn.Module
    tokenizer: Tokenizer
    settings: TaskSettings
    labels: tuple[str, ...]
    folder: Path
    device: torch.device
    precision: Precision

    def runner(self, settings: TaskSettings, long_rows: LongRows, batch_size: int | None = None) -> Runner:
        """A runner for `settings`, its own or adapted to a file; None: the device's usual batch size."""
        return Runner(
            model=self.model,
            task=build_task(settings, self.labels),
            pad_id=self.tokenizer.pad_id,
            device=self.device,
            precision=self.precision,
            batch_size=batch_size or default_batch_size(self.device),
            watch=lambda logits, batch: long_rows.count(item.length for item in batch.items),
        )


@dataclass(frozen=True)
class OpenedEncoder:
    """An encoder in evaluation mode on its device: ids, segments and mask of rows -> hidden_BTD."""

    model: PooledModel | OnnxModel
    tokenizer: Tokenizer
    folder: Path
    device: torch.device
    precision: Precision

    def embedder(
        self,
        long_rows: LongRows,
        pooling: Literal["mean", "cls", "max"] | None = None,
        normalize: bool | None = None,
        max_length: int | None = None,
        batch_size: int | None = None,
    ) -> Embedder:
        """An embedder. None: as the folder says, else the mean, not normalized; a usual batch size for the
        device.

        Raises `UserError` for a folder of sentence-transformers that is not supported.
        """
        own = read_pooling(self.folder) or PLAIN
        return Embedder(
            self.model,
            self.tokenizer,
            SentencePooling(
                pooling or own.mode,
                own.normalize if normalize is None else normalize,
                max_length or own.max_length,
            ),
            device=self.device,
            precision=self.precision,
            batch_size=batch_size or default_batch_size(self.device),
            count=long_rows.count,
        )


def open_task(model: Path, compute: Compute) -> OpenedTask:
    """Open a fine-tuned model. Raises `UserError` for a model of vectors, and as `resolve_model`,
    `load_task_folder`, `OnnxModel` and `Compute`."""
    place = find_onnx(model)
    if place is not None:
        return _open_onnx_task(place, compute)
    device, precision = compute.of_weights()
    loaded = load_task_folder(resolve_model(model))
    refuse_vectors(loaded.settings.type, loaded.folder)
    return OpenedTask(
        loaded.model.to(device).eval(),
        loaded.tokenizer,
        loaded.settings,
        labels=loaded.labels,
        folder=loaded.folder,
        device=device,
        precision=precision,
    )


def open_encoder(model: Path, compute: Compute) -> OpenedEncoder:
    """Open an encoder; raises as `resolve_model`, `load_encoder_folder`, `OnnxModel` and `Compute`."""
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
    return OpenedEncoder(encoder, tokenizer, folder, device=device, precision=precision)


def _open_onnx_task(place: OnnxPlace, compute: Compute) -> OpenedTask:
    device, precision = compute.of_onnx(place.file)
    path = place.folder / "config.json"
    architecture = read_architecture(path)
    settings, labels = read_task(place.folder, read_json(path), architecture)
    refuse_vectors(settings.type, place.folder)
    model = OnnxModel(place.file, architecture)
    model.need(*(SPANS if task_class(settings.type).head == "spans" else [LOGITS]))
    return OpenedTask(
        model,
        Tokenizer.load(place.folder),
        settings,
        labels=labels,
        folder=place.folder,
        device=device,
        precision=precision,
    )
