"""A model -> a folder with its ONNX file, which is checked at shapes that the exporter did not see."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from bertcli.folders import convert, locate, model_files, onnx_comparison, onnx_graph, onnx_source, sealed
from bertcli.inference.onnx_model import OnnxModel
from bertcli.model.seam import plain_path
from bertcli.system.errors import UserError
from bertcli.system.terminal import say
from bertcli.tasks.examples import Example

TOLERANCE = 1e-4
"""Largest allowed difference of an output, in units of the largest output if that is above 1."""
_ADVICE = "nothing was written. Install the versions in constraints.txt, and try again"
_LONGEST = 512
"""Tokens of the longest row: more than every window, and every distance in published models' tables."""


@torch.inference_mode()
def check_equal(model: onnx_graph.ExportedModel, served: OnnxModel) -> float:
    """The largest difference of an output, in units of the largest output if that is above 1.

    The rows are one as long as the model reads (at most 512 tokens), rows of one token, and rows of several
    lengths that all end in padding, one of them without a real token.

    Raises `UserError` if the difference is above `TOLERANCE`, or a shape differs.
    """
    largest = 0.0
    for ids, mask, segments in _inputs(model):
        given = (ids, mask, segments)[: len(model.inputs)]
        with plain_path():
            expected = model(*given)
        for want, got, name in zip(expected, served.run(ids, segments, mask), model.outputs, strict=True):
            if want.shape != got.shape:
                raise UserError(
                    f"{name} of the exported model has the shape {tuple(got.shape)}, not {tuple(want.shape)} "
                    f"for rows of the shape {tuple(ids.shape)}; {_ADVICE}"
                )
            difference = float((want - got).abs().max() / want.abs().max().clamp(min=1))
            if not difference <= TOLERANCE:  # NaN fails as well
                raise UserError(
                    f"{name} of the exported model differs by {difference:g}, more than {TOLERANCE:g}, for "
                    f"rows of the shape {tuple(ids.shape)}; {_ADVICE}"
                )
            largest = max(largest, difference)
    return largest


def _inputs(model: onnx_graph.ExportedModel) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The ids, mask and segments of random rows."""
    longest = min(_LONGEST, model.architecture.usable_positions)
    padded = max(2, longest // 2)
    some = [max(1, padded - 3), max(1, padded // 3), 0]
    generator = torch.Generator().manual_seed(0)
    for lengths, width in (([longest], longest), ([1, 1, 1, 1, 1], 1), (some, padded)):
        sizes = (len(lengths), width)
        ids_BT = torch.randint(model.architecture.vocab_size, sizes, generator=generator)
        segments_BT = torch.randint(2, sizes, generator=generator)
        mask_BT = (torch.arange(width) < torch.tensor(lengths)[:, None]).long()
        rows = (ids_BT, mask_BT, segments_BT)
        if len(model.axes) == 3:  # an input of two questions, each with the same choices
            yield tuple(torch.stack([each, each.flip(0)]) for each in rows)  # pyright: ignore[reportReturnType]
        else:
            yield rows


@dataclass(frozen=True)
class Exported:
    """The result of `export_onnx`: names of outputs, bytes of the file, difference by `check_equal`."""

    outputs: tuple[str, ...]
    bytes: int
    difference: float
    int8: onnx_comparison.Comparison | None


def export_onnx(source: onnx_source.Source, destination: Path, sample: Sequence[Example] | None) -> Exported:
    """Write the folder `destination`, a new or an empty one. It appears only once it is complete and checked.

    Args:
        sample: examples on which a second form, with weights of 8 bits, is compared; None: it is not written.

    Raises:
        UserError: `destination` is not empty, or cannot be written; outputs differ (`check_equal`).
    """
    return sealed.write_new(destination, lambda partial: _fill(source, partial, sample))


def _fill(source: onnx_source.Source, folder: Path, sample: Sequence[Example] | None) -> Exported:
    model = source.exported
    model_files.write_description(folder, model.architecture, source.tokenizer, declared=source.declared)
    convert.carry_files(source.folder, folder)
    (folder / locate.ONNX_FOLDER).mkdir()
    file, quantized = (
        folder / locate.ONNX_FOLDER / name for name in (locate.ONNX_FILE, locate.QUANTIZED_FILE)
    )
    say("exporting")
    onnx_graph.write_onnx(model, file)
    say("comparing the outputs")
    fp32 = OnnxModel(file, model.architecture)
    difference, report = check_equal(model, fp32), None
    if sample is not None:
        say("rounding the weights to 8 bits, and measuring")
        seven_bits = onnx_graph.write_int8(file, quantized)
        int8 = OnnxModel(quantized, model.architecture)
        report = onnx_comparison.compare(source, fp32, int8, sample=sample, seven_bits=seven_bits)
    return Exported(model.outputs, file.stat().st_size, difference, int8=report)
