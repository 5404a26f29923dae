"""Vectors in files: NumPy's array, JSON lines, Parquet; whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from bertcli.inference import vectors as vector_files
from bertcli.inference.vectors import Embedded, write_vectors

VECTORS = torch.randn(11, 3)


def embedded() -> list[Embedded]:
    return [Embedded(f"text {number}", vector_D, 0) for number, vector_D in enumerate(VECTORS)]


def test_an_array_of_numpy(tmp_path: Path) -> None:
    path = tmp_path / "v.npy"
    write_vectors(path, iter(embedded()), hidden=3)
    array = np.load(path, mmap_mode="r")
    assert (array.dtype, array.shape) == (np.float32, (11, 3))
    np.testing.assert_array_equal(array, VECTORS.numpy())


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    write_vectors(path, embedded(), hidden=3)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert rows[10] == {"text": "text 10", "vector": VECTORS[10].tolist()}


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(vector_files, "PARQUET_ROWS", 4)
    path = tmp_path / "v.parquet"
    write_vectors(path, embedded(), hidden=3)
    assert parquet.ParquetFile(path).num_row_groups == 3
    table = parquet.read_table(path)
    assert table.column("text").to_pylist() == [f"text {number}" for number in range(11)]
    np.testing.assert_array_equal(np.array(table.column("vector").to_pylist(), np.float32), VECTORS.numpy())


@pytest.mark.parametrize("suffix", [".npy", ".jsonl", ".parquet"])
def test_a_run_that_fails_leaves_what_was_there(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / f"v{suffix}"
    path.write_text("old")

    def failing() -> Iterator[Embedded]:
        yield embedded()[0]
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_vectors(path, failing(), hidden=3)
    assert [(left.name, left.read_text()) for left in tmp_path.iterdir()] == [(path.name, "old")]
