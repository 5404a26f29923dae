"""Rows of a table -> questions to answer from their contexts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bertcli.config.finetune import TaskSettings
from bertcli.errors import UserError
from bertcli.examples.bad_rows import BadRow, each
from bertcli.examples.examples import Answer, QuestionExample
from bertcli.examples.json_text import parse_json
from bertcli.examples.squad import answers_of
from bertcli.examples.table import Row, Table


def question_examples(
    table: Table, settings: TaskSettings, labeled: bool
) -> Iterator[QuestionExample | BadRow]:
    """An example for each row. Its id is in the column `id`; without one it is the number of the line.

    A labeled row has its answers in the column `answers`, or that of `settings.label`, as in the data sets of
    Hugging Face: an object with lists `text` and `answer_start`, or a list of objects with these keys.

    Raises `UserError` if a column is missing.
    """
    if labeled and settings.label is None and "answers" not in table.names:
        raise UserError(
            f"{table.path}: answers are read from SQuAD JSON (task.format: squad), or a column `answers` "
            'with their places: {"text": [...], "answer_start": [...]} (task.label names another column)'
        )
    label = table.label("answers" if settings.label is None else settings.label) if labeled else None
    columns = settings.text_columns or ("question", "context")
    question, context = (table.column(column, "task.text") for column in columns)

    def example(row: Row) -> QuestionExample:
        id = row.text("id") if "id" in row.values else str(row.number)
        text = row.text(context)
        answers = None if label is None else _answers(row, label, text)
        return QuestionExample(
            row.where, row.values, id, question=row.text(question), context=text, answers=answers
        )

    return each(table.rows, example)


def _answers(row: Row, column: str, context: str) -> tuple[Answer, ...]:
    value = row.value(column)
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        value = parse_json(value, Path(row.where), row.number)
    if isinstance(value, dict) and isinstance(value.get("text"), list):
        texts, starts = value["text"], value.get("answer_start")
        if not isinstance(starts, list) or len(starts) != len(texts):
            raise BadRow(
                f"{row.where}, column {column!r}: expected as many values of answer_start as of text"
            )
        value = [{"text": text, "answer_start": at} for text, at in zip(texts, starts, strict=True)]
    if value is None or isinstance(value, str | int | float) or (value and isinstance(value[0], str)):
        raise BadRow(
            f"{row.where}, column {column!r}: {str(value)[:40]!r} does not say where in the context the "
            'answer begins; expected {"text": [...], "answer_start": [...]}, in characters, or SQuAD JSON'
        )
    is_impossible = row.values.get("is_impossible")
    return answers_of({"answers": value, "is_impossible": is_impossible is True}, context, row.where)
