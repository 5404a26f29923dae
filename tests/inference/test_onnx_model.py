"""Calls of onnxruntime: which rows are computed together, and with which threads."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertcli.inference.onnx_model import _CALL_TOKENS, OnnxModel, _of_similar_length, one_thread
from bertcli.system.errors import UserError


@given(st.lists(st.integers(1, 512), min_size=1, max_size=40))
def test_each_row_is_in_one_call_with_little_padding(lengths: list[int]) -> None:
    calls = list(_of_similar_length(lengths))
    assert sorted(row for rows, _ in calls for row in rows) == list(range(len(lengths)))
    for rows, longest in calls:
        assert max(lengths[row] for row in rows) == longest
        assert sum(longest - lengths[row] for row in rows) <= _CALL_TOKENS


@pytest.mark.parametrize(("kind", "threads"), [(OnnxModel, 1), (torch.nn.Identity, 2)])
def test_torch_leaves_the_cores_to_onnxruntime(kind: type[torch.nn.Module], threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_thread(object.__new__(kind)):
            assert torch.get_num_threads() == threads
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_an_error_of_onnxruntime_names_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*given: object) -> None:
        raise RuntimeError("Got invalid dimensions for input: input_ids\nmore")

    model = object.__new__(OnnxModel)
    torch.nn.Module.__init__(model)
    model.file, model._ranks = Path("a.onnx"), {"input_ids": 2}
    monkeypatch.setattr(model, "_session", SimpleNamespace(run=run), raising=False)
    with pytest.raises(
        UserError, match=r"a\.onnx: onnxruntime cannot compute it: Got invalid .* input_ids\. Ex"
    ):
        model.run(torch.ones(1, 3), torch.zeros(1, 3))
