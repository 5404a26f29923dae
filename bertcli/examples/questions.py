"""Rows of a table -> questions to answer from their contexts."""

from __future__ import annotations

from collections.abc import Iterator

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.examples.bad_rows import BadRow, each
from bertcli.examples.examples import QuestionExample
from bertcli.examples.table import Row, Table


def question_examples(
    table: Table, settings: TaskSettings, labeled: bool
) -> Iterator[QuestionExample | BadRow]:
    """An example for each row. Its id is in the column `id`; without one it is the number of the line.

    Raises `UserError` if a column is missing, or the file is `labeled`: answers are read from SQuAD JSON.
    """
    if labeled:
        raise UserError(
            f"{table.path}: answers are read from SQuAD JSON (task.format: squad); a table holds questions "
            "to predict"
        )
    columns = settings.text_columns or ("question", "context")
    question, context = (table.column(column, "task.text") for column in columns)

    def example(row: Row) -> QuestionExample:
        id = row.text("id") if "id" in row.values else str(row.number)
        return QuestionExample(
            row.where, row.values, id, question=row.text(question), context=row.text(context), answers=None
        )

    return each(table.rows, example)
