"""Weights of 8 bits, in a graph that is written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from bertcli.folders.onnx_graph import write_int8


def graph(path: Path, weight_EV: np.ndarray, users: int) -> None:
    """x times a transposed weight, which has several users, as shared layers have."""
    nodes = [helper.make_node("Transpose", ["w"], [f"t{user}"], perm=[1, 0]) for user in range(users)]
    nodes += [helper.make_node("MatMul", ["x", f"t{user}"], [f"y{user}"]) for user in range(users)]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", weight_EV.shape[1]])]
    made = [
        helper.make_tensor_value_info(f"y{user}", TensorProto.FLOAT, ["rows", weight_EV.shape[0]])
        for user in range(users)
    ]
    weights = [numpy_helper.from_array(weight_EV, "w")]
    model = helper.make_model(
        helper.make_graph(nodes, "shared", given, made, weights),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=10,
    )
    onnx.save(model, str(path))


@pytest.mark.parametrize(("vnni", "largest"), [(False, 64), (True, 127)])
def test_shared_weights_are_rounded_once_and_use_the_bits_that_the_processor_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vnni: bool, largest: int
) -> None:
    processor = {"avx2": True, "avx512_vnni": vnni}
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: processor)
    weight = np.random.default_rng(0).normal(size=(40, 24)).astype(np.float32)
    graph(tmp_path / "model.onnx", weight, users=3)
    assert write_int8(tmp_path / "model.onnx", tmp_path / "int8.onnx") is not vnni
    found = onnx.load(str(tmp_path / "int8.onnx")).graph
    kinds = [node.op_type for node in found.node]
    assert kinds.count("MatMulInteger") == 3
    assert "Transpose" not in kinds
    (rounded,) = [numpy_helper.to_array(each) for each in found.initializer if list(each.dims) == [24, 40]]
    assert rounded.dtype == np.int8
    assert np.abs(rounded.astype(int)).max() == largest
