"""The forms of an exported model beside each other: sizes, speeds, and whether the answers are equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle, islice

from bertcli.examples.examples import Example
from bertcli.export.agreement import agreement
from bertcli.export.source import Source, weight_bytes
from bertcli.export.speed import rows_per_second
from bertcli.inference.onnx_model import OnnxModel

BATCH_SIZES = (1, 32)
"""For which the speed is measured."""


@dataclass(frozen=True)
class Form:
    """A form of the model: the size of its weights or of its file, and rows a second by batch size."""

    bytes: int
    rows_per_second: dict[int, float]


@dataclass(frozen=True)
class Comparison:
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


def compare(
    source: Source, fp32: OnnxModel, int8: OnnxModel, sample: Sequence[Example], seven_bits: bool
) -> Comparison:
    """Measure all forms on rows of the sample, and compare the answers to all of it."""
    models = {"bertcli, fp32": source.model, "onnxruntime, fp32": fp32, "onnxruntime, int8": int8}
    sizes = [weight_bytes(source.model), fp32.file.stat().st_size, int8.file.stat().st_size]
    rows = list(islice(cycle(source.rows(sample)), max(BATCH_SIZES)))  # a small sample is read again
    speeds = {
        size: rows_per_second(models, rows, batch_size=size, pad_id=source.tokenizer.pad_id)
        for size in BATCH_SIZES
    }
    forms = {
        name: Form(bytes, {size: speeds[size][name] for size in BATCH_SIZES})
        for name, bytes in zip(models, sizes, strict=True)
    }
    return Comparison(seven_bits, len(sample), agreement(source, int8, sample), forms=forms)
