"""An ONNX file -> one with weights of 8 bits, whose activations are rounded as they come."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch

from bertcli.export.silence import silent
from bertcli.text.streams import import_extra

_ROUNDED = ["MatMul", "Gather"]
"""Operators whose weights are rounded: dense layers, and embeddings, which are most of a small model."""


def write_int8(source: Path, path: Path) -> bool:
    """Write the file `source` with weights of 8 bits, a scale for each column; returns if one bit is unused.

    Dynamic quantization by onnxruntime. On x86 processors without VNNI the instructions for 8 bits add pairs
    of products in 16 bits, which may overflow: there the weights use 7 bits.
    """
    quantization: Any = import_extra(
        "onnxruntime.quantization", "onnx", "--int8 is done by onnxruntime", doing="it"
    )
    processor = torch.cpu.get_capabilities()
    one_bit_less = bool(
        processor.get("avx2") and not (processor.get("avx512_vnni") or processor.get("avx_vnni"))
    )
    with silent(logging.getLogger()):
        quantization.quantize_dynamic(
            str(source),
            str(path),
            op_types_to_quantize=_ROUNDED,
            per_channel=True,
            reduce_range=one_bit_less,
            weight_type=quantization.QuantType.QInt8,
        )
    return one_bit_less
