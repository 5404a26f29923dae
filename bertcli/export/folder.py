"""A model -> a folder for onnxruntime and the libraries on it, written only if the outputs are equal.

OUT/onnx/model.onnx              and with int8 model_quantized.onnx
OUT/config.json, tokenizer.json  as in a model folder; also the files of sentence-transformers
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bertcli.examples.examples import Example
from bertcli.export.comparison import Comparison, compare
from bertcli.export.graph import write_onnx
from bertcli.export.int8 import write_int8
from bertcli.export.source import Source
from bertcli.export.verify import check_equal
from bertcli.files import disk_errors
from bertcli.hf.convert import carry_files, check_new
from bertcli.hf.locate import ONNX_FILE, ONNX_FOLDER, QUANTIZED_FILE
from bertcli.hf.model_files import write_description
from bertcli.inference.onnx_model import OnnxModel
from bertcli.owned.folders import write_folder
from bertcli.terminal import say


@dataclass(frozen=True)
class Exported:
    """What `export_onnx` wrote: names of outputs, bytes of the file, and the difference of `check_equal`."""

    outputs: tuple[str, ...]
    bytes: int
    difference: float
    int8: Comparison | None


def export_onnx(source: Source, destination: Path, sample: Sequence[Example] | None) -> Exported:
    """Write the folder `destination`, a new or an empty one. It appears only once it is complete and checked.

    Args:
        sample: write a form with weights of 8 bits too, and compare it on these; None: do not.

    Raises:
        UserError: `destination` is not empty, or cannot be written; outputs differ (`check_equal`).
    """
    check_new(destination)
    done: list[Exported] = []
    with disk_errors(
        f"{destination}: could not be written", "and try again", "name a folder that can be written"
    ):
        write_folder(
            destination.absolute(), lambda partial: done.append(_fill(source, partial, sample)), sealed=False
        )
    return done[0]


def _fill(source: Source, folder: Path, sample: Sequence[Example] | None) -> Exported:
    model = source.exported
    write_description(folder, model.architecture, source.tokenizer, declared=source.declared)
    carry_files(source.folder, folder)
    (folder / ONNX_FOLDER).mkdir()
    file, quantized = (folder / ONNX_FOLDER / name for name in (ONNX_FILE, QUANTIZED_FILE))
    say("exporting")
    write_onnx(model, file)
    say("comparing the outputs")
    fp32 = OnnxModel(file, model.architecture)
    difference, report = check_equal(model, fp32), None
    if sample is not None:
        say("rounding the weights to 8 bits, and measuring")
        seven_bits = write_int8(file, quantized)
        int8 = OnnxModel(quantized, model.architecture)
        report = compare(source, fp32, int8, sample=sample, seven_bits=seven_bits)
    return Exported(model.outputs, file.stat().st_size, difference, int8=report)
