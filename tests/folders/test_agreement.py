"""Every head of a model counts in the agreement of an export with it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bertcli.folders.onnx_folder import agreement
from bertcli.folders.onnx_source import NO_TASK, read_source
from bertcli.inference.inputs import example_of
from bertcli.inference.onnx_model import OnnxModel
from tests.cli.test_export import exported
from tests.folders.folders import saved_model


def test_the_labels_of_a_pair_head_are_compared_too(tmp_path: Path) -> None:
    saved_model(tmp_path / "model")
    exported(tmp_path / "model", tmp_path / "onnx")
    source = read_source(tmp_path / "model", encoder_alone=False)
    served = OnnxModel(tmp_path / "onnx" / "onnx" / "model.onnx", source.exported.architecture)
    rows = [example_of([text], "here", NO_TASK) for text in ("the cat sat on it", "a dog", "it was dark")]
    equal = agreement(source, served, rows)
    assert equal["equal"] == 1
    run = served.run

    def swapped(ids: torch.Tensor, segments: torch.Tensor) -> tuple[torch.Tensor, ...]:
        words, pair = run(ids, segments)
        return words, pair.flip(-1)

    served.run = swapped  # pyright: ignore[reportAttributeAccessIssue]
    assert agreement(source, served, rows)["equal"] == pytest.approx(1 - len(rows) / equal["answers"])
