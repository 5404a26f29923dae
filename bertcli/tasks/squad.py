"""SQuAD JSON, version 1.1 or 2.0 (Rajpurkar et al. 2016, 2018) -> questions with their answers."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bertcli.corpus.streams import read_text
from bertcli.system.errors import UserError
from bertcli.tasks.columns import Column, Recognized, Sample
from bertcli.tasks.examples import Answer, QuestionExample
from bertcli.tasks.rows import parse_json
from bertcli.tasks.table import BadRow, LabeledFile, Row, Table, each


def read_squad(file: LabeledFile) -> Iterator[QuestionExample | BadRow]:
    """An example for each question, with all of its answers; a question that `is_impossible` or lists none
    has none.

    The file is read into memory. An answer that is not at its place in the context gives a `BadRow`. So does
    an id that another question has, since scores are by id. Raises `UserError` for other JSON than SQuAD's.
    """
    content = parse_json(read_text(file.path, file.settings.decoding), file.path)
    ids: set[str] = set()

    def example(found: tuple[str, Any, str]) -> QuestionExample:
        made = _example(*found, file)
        if made.id in ids:
            raise BadRow(f"{made.where}: another question has this id")
        ids.add(made.id)
        return made

    return each(_questions(content, str(file.path)), example)


def _questions(file: Any, path: str) -> Iterator[tuple[str, Any, str]]:
    """The (context, question object, place) of each question."""
    for a, article in enumerate(_get(file, "data", list, where=path)):
        paragraphs = _get(article, "paragraphs", list, where=f"{path}, data[{a}]")
        for p, paragraph in enumerate(paragraphs):
            where = f"{path}, data[{a}].paragraphs[{p}]"
            context = _get(paragraph, "context", str, where=where)
            for q, question in enumerate(_get(paragraph, "qas", list, where=where)):
                yield context, question, f"{where}.qas[{q}]"


def _example(context: str, question: Any, place: str, file: LabeledFile) -> QuestionExample:
    id = str(_get(question, "id", str | int, where=place))
    where = f"{file.path}, question {id}"
    text = _get(question, "question", str, where=where)
    columns = {"id": id, "question": text, "context": context}
    answers = answers_of(question, context, where) if file.labeled else None
    return QuestionExample(where, columns, (text, context), id=id, answers=answers)


def answers_of(question: Any, context: str, where: str) -> tuple[Answer, ...]:
    """The answers of a SQuAD question object. Raises `BadRow` for an answer that is not at its place."""
    if question.get("is_impossible"):
        return ()
    answers = [
        Answer(_get(answer, "text", str, where=where), _get(answer, "answer_start", int, where=where))
        for answer in _get(question, "answers", list, where=where)
    ]
    for answer in answers:
        there = context[max(0, answer.start) :][: len(answer.text)]
        if answer.start < 0 or not answer.text or there != answer.text:
            raise BadRow(
                f"{where}: the answer {answer.text!r} is not at character {answer.start} of its "
                f"context; found {there!r}"
            )
    return tuple(answers)


def _get(value: Any, key: str, kind: Any, where: str) -> Any:
    """`value[key]`. Raises `BadRow` if there is no such key, or its value is of another kind."""
    if not isinstance(value, dict) or key not in value:
        raise BadRow(f"{where}: no key {key!r}, which SQuAD JSON has here")
    if not isinstance(value[key], kind):
        raise BadRow(f"{where}: {key!r} holds {str(value[key])[:40]!r}, which SQuAD JSON does not have here")
    return value[key]


def question_examples(table: Table) -> Iterator[QuestionExample | BadRow]:
    """An example for each row. Its id is in the column `id`; without this column it is the number of the
    line.

    A labeled row has its answers in the column `answers`, or that of `settings.label`, as in the data sets of
    Hugging Face: an object with lists `text` and `answer_start`, or a list of objects with these keys.

    Raises `UserError` if a column is missing.
    """
    settings = table.file.settings
    if table.file.labeled and settings.label is None and "answers" not in table.names:
        raise UserError(
            f"{table.file.path}: answers are read from SQuAD JSON (task.format: squad), or a column "
            '`answers` with their places: {"text": [...], "answer_start": [...]} (task.label names another '
            "column)"
        )
    label = table.label("answers")
    columns = settings.text_columns or ("question", "context")
    question, context = (table.column(column, "task.text") for column in columns)

    def example(row: Row) -> QuestionExample:
        id = row.text("id") if "id" in row.values else str(row.number)
        text = row.text(context)
        answers = None if label is None else _answers(row, label, text)
        return QuestionExample(row.where, row.values, (row.text(question), text), id=id, answers=answers)

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
    if isinstance(value, dict):
        value = [value]
    if value is None or isinstance(value, str | int | float) or (value and isinstance(value[0], str)):
        raise BadRow(
            f"{row.where}, column {column!r}: {str(value)[:40]!r} does not say where in the context the "
            'answer begins; expected {"text": [...], "answer_start": [...]}, in characters, or SQuAD JSON'
        )
    is_impossible = row.values.get("is_impossible")
    return answers_of({"answers": value, "is_impossible": is_impossible is True}, context, row.where)


_COLUMNS = {"question", "context", "answers"}


def recognize_questions(sample: Sample) -> Recognized | None:
    """The keys of `task`; None if the file holds no questions. Raises `UserError` for answers without their
    places."""
    if sample.format == "squad":
        keys = {} if sample.suffix == ".json" else {"format": "squad"}
        comments = {"type": "questions with answers in their texts, in SQuAD's JSON"}
        return Recognized({"type": "question-answering"} | keys, comments, "SQuAD JSON")
    names = {column.name for column in sample.columns}
    answers = _answer_column(sample.columns)
    if answers is not None and {"question", "context"} <= names:
        keys = {} if answers.name == "answers" else {"label": answers.name}
        comments = {"type": "questions, their contexts, and answers with their places"}
        return Recognized({"type": "question-answering"} | keys, comments)
    if {name.lower() for name in names} >= _COLUMNS and sample.format in ("jsonl", "parquet"):
        raise UserError(
            f"{sample.path}: holds questions with answers, but not where in the context they begin; expected "
            '"answers": {"text": [...], "answer_start": [...]}, in characters, or SQuAD JSON'
        )
    return None


def may_be_questions(sample: Sample) -> bool:
    """True if columns have the names of questions with answers, or hold answers with their places."""
    return _answer_column(sample.columns) is not None or {each.name for each in sample.columns} >= _COLUMNS


def _answer_column(columns: Sequence[Column]) -> Column | None:
    """The column of answers with their places in the context, as in SQuAD."""
    return next((c for c in columns if c.values and all(map(_is_answers, c.values))), None)


def _is_answers(value: Any) -> bool:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return False
    objects = value if isinstance(value, list) else [value]
    return all(isinstance(each, dict) and {"text", "answer_start"} <= each.keys() for each in objects)
