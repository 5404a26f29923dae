"""A Parquet file -> its rows, a batch at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertcli.errors import UserError
from bertcli.examples.table import Row, Table, check_names
from bertcli.text.streams import import_extra

BATCH = 1024
"""Rows decoded at once."""


def open_parquet(path: Path) -> Table:
    """The rows, with all columns. Raises `UserError` if pyarrow or the file is missing, or it is damaged."""
    parquet = import_extra("pyarrow.parquet", "parquet", f"{path} is a Parquet file")
    with _readable(path):
        names = check_names(path, parquet.read_schema(path).names)
    return Table(path, names, _rows(path, parquet, names))


def _rows(path: Path, parquet: Any, names: tuple[str, ...]) -> Iterator[Row]:
    number = 0
    with _readable(path), parquet.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=BATCH):
            columns = [map(_plain, column.to_pylist()) for column in batch.columns]
            for values in zip(*columns, strict=True):
                number += 1
                yield Row(f"{path}, row {number}", number, dict(zip(names, values, strict=True)))


def _plain(value: Any) -> Any:
    """The value as JSON has it, so that it can be written again. Dates and decimals become text, and so do
    bytes in UTF-8, which some programs write for text. NaN, which pandas writes for a missing value, becomes
    None."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, str | int | float | list | dict) else str(value)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    arrow = import_extra("pyarrow", "parquet", f"{path} is a Parquet file")
    try:
        yield
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: a text is not UTF-8 ({error}); make the file again from its source"
        ) from None
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).strip().split("\n")[0]
        raise UserError(f"{path}: not a readable Parquet file: {reason}") from None
