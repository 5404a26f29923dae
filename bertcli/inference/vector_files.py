"""A stream of vectors -> a file: .npy, .jsonl or .parquet; only the current ones are in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bertcli.inference.embed import Embedded
from bertcli.inference.outputs import aside
from bertcli.text.streams import import_extra

SUFFIXES = (".npy", ".jsonl", ".parquet")
PARQUET_ROWS = 4096
"""Rows of a row group, which is held in memory."""


def vector_line(embedded: Embedded) -> str:
    """A text and its vector as a line of JSON."""
    line = {"text": embedded.text, "vector": embedded.vector_D.tolist()}
    return json.dumps(line, ensure_ascii=False) + "\n"


def write_vectors(path: Path, vectors: Iterable[Embedded], hidden: int) -> None:
    """Write all `vectors` of `hidden` numbers in the format of the suffix, atomically (`outputs.aside`).

    Raises `UserError` if pyarrow is missing, and `OSError` if the file cannot be written.
    """
    with aside(path) as partial:
        if path.suffix == ".parquet":
            _write_parquet(partial, vectors, hidden)
        elif path.suffix == ".npy":
            with open(partial, "wb") as file:
                _write_npy(file, vectors, hidden)
        else:
            with open(partial, "w", encoding="utf-8") as lines:
                lines.writelines(map(vector_line, vectors))


def _write_npy(file: BinaryIO, vectors: Iterable[Embedded], hidden: int) -> None:
    """The number of texts is known only at the end: the header, in which NumPy leaves room, is rewritten."""
    _write_header(file, 0, hidden)
    start, count = file.tell(), 0
    for embedded in vectors:
        file.write(embedded.vector_D.numpy().astype("<f4", copy=False).tobytes())
        count += 1
    file.seek(0)
    _write_header(file, count, hidden)
    assert file.tell() == start


def _write_header(file: BinaryIO, count: int, hidden: int) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": (count, hidden)}
    np.lib.format.write_array_header_1_0(file, header)


def _write_parquet(path: Path, vectors: Iterable[Embedded], hidden: int) -> None:
    arrow, parquet = (
        import_extra(name, "parquet", f"{path} is a Parquet file") for name in ("pyarrow", "pyarrow.parquet")
    )
    schema = arrow.schema([("text", arrow.string()), ("vector", arrow.list_(arrow.float32(), hidden))])
    with parquet.ParquetWriter(path, schema) as writer:
        for some in _groups(iter(vectors)):
            flat = np.concatenate([embedded.vector_D.numpy() for embedded in some])
            column = arrow.FixedSizeListArray.from_arrays(arrow.array(flat, arrow.float32()), hidden)
            texts = arrow.array([embedded.text for embedded in some], arrow.string())
            writer.write_table(arrow.Table.from_arrays([texts, column], schema=schema))


def _groups(vectors: Iterator[Embedded]) -> Iterator[list[Embedded]]:
    while group := list(islice(vectors, PARQUET_ROWS)):
        yield group
