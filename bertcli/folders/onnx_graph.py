"""A model -> its ONNX file, and a file with weights of 8 bits."""

import contextlib
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim

from bertcli.corpus.streams import import_extra
from bertcli.families.family import Family
from bertcli.families.registry import FAMILIES
from bertcli.inference.onnx_model import HIDDEN, IDS, LOGITS, MASK, SEGMENTS, SPANS
from bertcli.model.encoder import BodyModel
from bertcli.model.seam import plain_path


@contextlib.contextmanager
def silent(logger: logging.Logger) -> Iterator[None]:
    """A block in which `logger` says only errors and Python's warnings are ignored: exporters warn about
    themselves and about packages, which is of no use at a terminal."""
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


_ROWS, _CHOICES, _TOKENS = 2, 3, 7
"""Sizes of the example that is traced. None of them is 1: the exporter would keep such an axis at 1."""


class ExportedModel(nn.Module):
    """A model with the inputs and outputs of its ONNX file, which are those of its class in transformers.

    Attributes:
        inputs, outputs: the names of the inputs and outputs. Types of tokens are an input only of a model
            that reads them.
        axes: the axes of each input; each may have any size, the last one up to the model's positions.
    """

    def __init__(self, model: BodyModel, kind: str) -> None:
        """`kind` is that of `folders.model_files.Declaration`. All choices of a question are one input."""
        super().__init__()
        self.model, self.kind = model, kind
        architecture = self.architecture = model.architecture
        self.inputs = (IDS, MASK, *([SEGMENTS] if architecture.num_segments > 1 else []))
        self.outputs = _output_names(kind, FAMILIES[architecture.family])
        choices = ["num_choices"] if kind == "choices" else []
        self.axes = ("batch_size", *choices, "sequence_length")

    def forward(self, ids: Tensor, mask: Tensor, segments: Tensor | None = None) -> tuple[Tensor, ...]:
        """The int64 tensors of the `inputs`, with these `axes` -> the `outputs`."""
        ids_BT = ids.flatten(0, -2)
        segments_BT = torch.zeros_like(ids_BT) if segments is None else segments.flatten(0, -2)
        output: Any = self.model(ids_BT, segments_BT, mask.flatten(0, -2) != 0)
        model: Any = self.model
        if self.outputs == (HIDDEN,):
            return (output,)
        match self.kind:
            case "masked-lm" | "pretraining":
                words = output.mlm_logits_MV.unflatten(0, ids_BT.shape)
                return (words,) if output.pair_logits_B2 is None else (words, output.pair_logits_B2)
            case "pairs":
                return (model.pair_head(model.pooler(output[:, 0])),)
            case "discriminator":
                return (model.rtd_head(output, output[:, :1]),)
            case "spans":
                return tuple(output.unbind(-1))
            case "choices":
                return (output.view(ids.shape[:2]),)
        return (output,)

    def example(self) -> tuple[Tensor, ...]:
        """Inputs for the exporter."""
        length = min(_TOKENS, self.architecture.usable_positions)
        sizes = (_ROWS, _CHOICES, length) if len(self.axes) == 3 else (_ROWS, length)
        # Each input has its own tensor: one that is given twice would become one input.
        return tuple(torch.ones(sizes, dtype=torch.int64) for _ in self.inputs)


def check_packages() -> None:
    """Raise `UserError` if a package that the export needs is missing."""
    for package in ("onnx", "onnxscript", "onnxruntime"):
        import_extra(package, "onnx", f"an ONNX file is made by {package}", doing="exporting")


def write_onnx(model: ExportedModel, path: Path) -> None:
    """Write a model in evaluation mode as one file, with axes of any size."""
    axes = {name: Dim(name) for name in model.axes[:-1]}
    axes |= {model.axes[-1]: Dim(model.axes[-1], max=model.architecture.usable_positions)}
    sizes = tuple(dict(enumerate(axes.values())) for _ in model.inputs)
    with plain_path(), torch.no_grad(), silent(logging.getLogger("torch.onnx")):
        # `torch.onnx.export` alone would try again with fixed sizes after a failure.
        program = torch.export.export(model, model.example(), dynamic_shapes=sizes)
        exported = torch.onnx.export(
            program,
            dynamo=True,
            input_names=list(model.inputs),
            output_names=list(model.outputs),
            dynamic_shapes=sizes,
            verbose=False,
        )
    assert exported is not None
    for node in exported.model.graph.all_nodes():  # the properties name files of this machine
        node.metadata_props.clear()
    exported.save(str(path), external_data=False)


def _output_names(kind: str, family: Family) -> tuple[str, ...]:
    # The class that the folder of DeBERTa-v3's discriminator names has no head.
    if kind == "encoder" or family.classes[kind] == family.classes["encoder"]:
        return (HIDDEN,)
    if kind == "spans":
        return SPANS
    if kind == "pretraining" and family.pair_objective is not None:
        return LOGITS, family.pair_objective.pairs.output
    return (LOGITS,)


_ROUNDED = ["MatMul", "Gather"]
"""Operators whose weights are rounded: dense layers, and embeddings, which are most of a small model."""


def write_int8(source: Path, path: Path) -> bool:
    """Write the file `source` with weights of 8 bits, a scale for each column; True if a bit is unused.

    The method is dynamic quantization by onnxruntime. The 8-bit instructions of x86 processors without VNNI
    add pairs of products in 16 bits, which may overflow; the weights use 7 bits there.
    """
    import onnx
    from onnxruntime import quantization

    processor = torch.cpu.get_capabilities()
    has_vnni = processor.get("avx512_vnni") or processor.get("avx_vnni")
    one_bit_less = bool(processor.get("avx2") and not has_vnni)
    model = onnx.load(str(source))
    _transpose_weights(model.graph)
    del model.graph.value_info[:]  # onnxruntime before 1.32 transposes weights, but not these shapes of them
    with silent(logging.getLogger()):
        quantization.quantize_dynamic(
            model,
            str(path),
            op_types_to_quantize=_ROUNDED,
            per_channel=True,
            reduce_range=one_bit_less,
            weight_type=quantization.QuantType.QInt8,
        )
    return one_bit_less


def _transpose_weights(graph: Any) -> None:
    """Replace each transposition of a weight by a weight: onnxruntime does not round an operator's result.

    The exporter leaves transpositions of weights with several users: shared layers, the decoder of the words.
    """
    from onnx import numpy_helper

    weights = {each.name: each for each in graph.initializer}
    transposed: dict[str, str] = {}
    for node in [node for node in graph.node if node.op_type == "Transpose" and node.input[0] in weights]:
        name = f"{node.input[0]}.transposed"
        if name not in transposed.values():
            value = numpy_helper.to_array(weights[node.input[0]]).T.copy()
            graph.initializer.append(numpy_helper.from_array(value, name))
        transposed[node.output[0]] = name
        graph.node.remove(node)
    for node in graph.node:
        node.input[:] = [transposed.get(name, name) for name in node.input]
