"""A model -> a folder for onnxruntime and the libraries on it, written only if the outputs are equal.

OUT/onnx/model.onnx              and with int8 model_quantized.onnx
OUT/config.json, tokenizer.json  as in a model folder; also the files of sentence-transformers
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import nn

from bertcli.errors import UserError
from bertcli.examples.examples import Example
from bertcli.export.agreement import Subject, agreement
from bertcli.export.graph import ExportedModel, write_onnx
from bertcli.export.int8 import write_int8
from bertcli.export.speed import rows_per_second
from bertcli.export.verify import check_equal
from bertcli.files import disk_errors
from bertcli.hf.convert import carry_files, check_new
from bertcli.hf.locate import ONNX_FILE, ONNX_FOLDER, QUANTIZED_FILE, resolve_model
from bertcli.hf.model_files import read_model_files, write_description
from bertcli.hf.sentence_transformers import PLAIN, read_pooling
from bertcli.hf.task_config import read_task, task_type
from bertcli.hf.with_heads import WithHeads, with_heads, without_heads
from bertcli.inference.onnx_model import OnnxModel
from bertcli.owned.folders import write_folder
from bertcli.terminal import say

MOST_BYTES = 2_000_000_000
"""Of the weights in one ONNX file, whose format ends at 2 GiB."""
BATCH_SIZES = (1, 32)
"""For which the speed is measured."""


@dataclass(frozen=True)
class Source:
    """A model to export, and the folder that it was read from."""

    folder: Path
    read: WithHeads
    subject: Subject


@dataclass(frozen=True)
class Form:
    """A form of the model: the size of its weights or of its file, and rows a second by batch size."""

    bytes: int
    rows_per_second: dict[int, float]


@dataclass(frozen=True)
class Int8Report:
    """The form with weights of 8 bits beside the others.

    Attributes:
        seven_bits: whether its weights use 7 bits (`export.int8`).
        rows: of the sample.
        agreement: with bertcli (`export.agreement`).
        forms: by name.
    """

    seven_bits: bool
    rows: int
    agreement: dict[str, float]
    forms: dict[str, Form]


@dataclass(frozen=True)
class Exported:
    """What `export_onnx` wrote; `difference` is that of `check_equal`."""

    outputs: tuple[str, ...]
    bytes: int
    difference: float
    int8: Int8Report | None


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
        where = folder / "config.json"
        settings, labels = read_task(
            files.config, files.family, files.architecture.usable_positions, where=where
        )
    exported = ExportedModel(read.model, read.declared.kind).eval()
    subject = Subject(exported, files.tokenizer, settings, labels=labels, pooling=pooling or PLAIN)
    return Source(folder, read, subject)


def weight_bytes(model: nn.Module) -> int:
    """Of the parameters, each once."""
    return sum(parameter.nbytes for parameter in model.parameters())


def export_onnx(source: Source, destination: Path, sample: Sequence[Example] | None) -> Exported:
    """Write the folder `destination`, a new or an empty one. It appears only once it is complete and checked.

    Args:
        sample: write a form with weights of 8 bits too, and compare it on these; None: do not.

    Raises:
        UserError: `destination` is not empty, or cannot be written; outputs differ (`check_equal`); a package
            is missing.
    """
    check_new(destination)
    done: list[Exported] = []

    def fill(partial: Path) -> None:
        done.append(_fill(source, partial, sample))

    with disk_errors(
        f"{destination}: could not be written", "and try again", "name a folder that can be written"
    ):
        write_folder(destination.absolute(), fill, sealed=False)
    return done[0]


def _fill(source: Source, folder: Path, sample: Sequence[Example] | None) -> Exported:
    subject, model = source.subject, source.subject.exported
    write_description(folder, model.architecture, subject.tokenizer, declared=source.read.declared)
    carry_files(source.folder, folder)
    (folder / ONNX_FOLDER).mkdir()
    file, quantized = (folder / ONNX_FOLDER / name for name in (ONNX_FILE, QUANTIZED_FILE))
    say("exporting")
    write_onnx(model, file)
    say("comparing the outputs")
    served = OnnxModel(file, model.architecture)
    difference, report = check_equal(model, served), None
    if sample is not None:
        say("rounding the weights to 8 bits, and measuring")
        seven_bits = write_int8(file, quantized)
        int8 = OnnxModel(quantized, model.architecture)
        report = _compare(subject, served, int8, sample=sample, seven_bits=seven_bits)
    return Exported(model.outputs, file.stat().st_size, difference, int8=report)


def _compare(
    subject: Subject, fp32: OnnxModel, int8: OnnxModel, sample: Sequence[Example], seven_bits: bool
) -> Int8Report:
    models = {"bertcli, fp32": subject.model, "onnxruntime, fp32": fp32, "onnxruntime, int8": int8}
    sizes = [weight_bytes(subject.model), fp32.file.stat().st_size, int8.file.stat().st_size]
    rows = subject.rows(sample)[: max(BATCH_SIZES)]
    speeds = {
        size: rows_per_second(models, rows, batch_size=size, pad_id=subject.tokenizer.pad_id)
        for size in BATCH_SIZES
    }
    forms = {
        name: Form(bytes, {size: speeds[size][name] for size in BATCH_SIZES})
        for name, bytes in zip(models, sizes, strict=True)
    }
    return Int8Report(seven_bits, len(sample), agreement(subject, int8, sample), forms=forms)
