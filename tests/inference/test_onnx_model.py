"""Calls of onnxruntime: which rows are computed together, and with which threads."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bertcli.inference.onnx_model import _CALL_TOKENS, OnnxModel, _of_similar_length, one_thread


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
