"""An ONNX file -> one with weights of 8 bits, whose activations are rounded as they come."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch

from bertcli.export.silence import silent

_ROUNDED = ["MatMul", "Gather"]
"""Operators whose weights are rounded: dense layers, and embeddings, which are most of a small model."""


def write_int8(source: Path, path: Path) -> bool:
    """Write the file `source` with weights of 8 bits, a scale for each column; returns if one bit is unused.

    Dynamic quantization by onnxruntime. On x86 processors without VNNI the instructions for 8 bits add pairs
    of products in 16 bits, which may overflow: there the weights use 7 bits.
    """
    import onnx
    from onnxruntime import quantization

    processor = torch.cpu.get_capabilities()
    has_vnni = processor.get("avx512_vnni") or processor.get("avx_vnni")
    one_bit_less = bool(processor.get("avx2") and not has_vnni)
    model = onnx.load(str(source))
    _transpose_weights(model.graph)
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
    """Replace each transposed weight by a weight: onnxruntime does not round the result of an operator.

    The exporter leaves it so where a weight has several users: shared layers, and the decoder of the words.
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
