"""Rows of a table -> texts to compare: pairs, with or without a score, triplets, plain texts."""

from __future__ import annotations

from collections.abc import Iterator

from bertcli.config.finetune import TaskSettings
from bertcli.examples.bad_rows import BadRow, each
from bertcli.examples.examples import SimilarExample
from bertcli.examples.table import Row, Table
from bertcli.examples.texts import read_number


def similar_examples(
    table: Table, settings: TaskSettings, labeled: bool
) -> Iterator[SimilarExample | BadRow]:
    """An example for each row. Raises `UserError` if a column is missing."""
    columns = [table.column(column, "task.text") for column in settings.text_columns]
    score = table.label(settings.label) if labeled and settings.label is not None else None

    def example(row: Row) -> SimilarExample:
        texts = tuple(row.text(column) for column in columns)
        value = None if score is None else read_number(row, score, settings)
        return SimilarExample(row.where, row.values, texts, score=value)

    return each(table.rows, example)
