"""Small files, and what is read from them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import zstandard

from bertcli.config.task import TaskSettings
from bertcli.tasks.examples import TextExample
from bertcli.tasks.files import read_examples


def settings(**values: Any) -> TaskSettings:
    """Classification of the column `text` by the column `label`, but for `values`."""
    return TaskSettings.model_validate({"type": "classification", "text": "text", "label": "label"} | values)


def words(**values: Any) -> TaskSettings:
    return TaskSettings.model_validate({"type": "token-classification"} | values)


def questions(**values: Any) -> TaskSettings:
    return TaskSettings.model_validate({"type": "question-answering"} | values)


def choices(**values: Any) -> TaskSettings:
    return settings(**({"type": "multiple-choice", "text": "question", "choices": "choices"} | values))


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    """The file as it is named: compressed if its name ends in .gz or .zst."""
    data = text.encode(encoding)
    if path.suffix == ".gz":
        data = gzip.compress(data)
    if path.suffix == ".zst":
        data = zstandard.compress(data)
    path.write_bytes(data)
    return path


def write_jsonl(path: Path, *rows: Any) -> Path:
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


def read(path: Path, given: TaskSettings | None = None, labeled: bool = True, **options: Any) -> list[Any]:
    return list(read_examples(path, given or settings(), labeled, **options))


FORMATS = ("csv", "tsv", "jsonl", "json", "parquet")
"""The formats of `write_rows`."""


def write_rows(folder: Path, format: str, rows: list[dict[str, Any]]) -> Path:
    """Write rows as a file of a format."""
    path = folder / f"rows.{format}"
    if format == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif format == "jsonl":
        return write_jsonl(path, *rows)
    elif format == "json":
        write(path, json.dumps(rows))
    else:
        text = io.StringIO()
        table = csv.DictWriter(text, list(rows[0]), delimiter="," if format == "csv" else "\t")
        table.writeheader()
        table.writerows(rows)
        write(path, text.getvalue())
    return path


def rows(*given: tuple[str, object]) -> list[TextExample]:
    """An example for each text with its label."""
    return [TextExample(f"line {i}", {}, (text,), label) for i, (text, label) in enumerate(given)]  # pyright: ignore[reportArgumentType]
