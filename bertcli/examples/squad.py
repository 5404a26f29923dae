"""SQuAD JSON, version 1.1 or 2.0 (Rajpurkar et al. 2016, 2018) -> questions with their answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bertcli.config.finetune import TaskSettings
from bertcli.examples.bad_rows import BadRow, each
from bertcli.examples.examples import Answer, QuestionExample
from bertcli.examples.json_text import parse_json
from bertcli.text.streams import read_text


def read_squad(path: Path, settings: TaskSettings, labeled: bool) -> Iterator[QuestionExample | BadRow]:
    """An example for each question, with all of its answers; none if it `is_impossible` or lists none.

    The file is read into memory. An answer that is not at its place in the context makes a `BadRow`, and so
    does an id that another question has: scores are by id. Raises `UserError` for other JSON than SQuAD's.
    """
    file = parse_json(read_text(path, settings.decoding), path)
    ids: set[str] = set()

    def example(found: tuple[str, Any, str]) -> QuestionExample:
        made = _example(*found, str(path), labeled)
        if made.id in ids:
            raise BadRow(f"{made.where}: another question has this id")
        ids.add(made.id)
        return made

    return each(_questions(file, str(path)), example)


def _questions(file: Any, path: str) -> Iterator[tuple[str, Any, str]]:
    """(context, question object, place) of each question."""
    for a, article in enumerate(_get(file, "data", list, where=path)):
        paragraphs = _get(article, "paragraphs", list, where=f"{path}, data[{a}]")
        for p, paragraph in enumerate(paragraphs):
            where = f"{path}, data[{a}].paragraphs[{p}]"
            context = _get(paragraph, "context", str, where=where)
            for q, question in enumerate(_get(paragraph, "qas", list, where=where)):
                yield context, question, f"{where}.qas[{q}]"


def _example(context: str, question: Any, place: str, path: str, labeled: bool) -> QuestionExample:
    id = str(_get(question, "id", str | int, where=place))
    where = f"{path}, question {id}"
    text = _get(question, "question", str, where=where)
    columns = {"id": id, "question": text, "context": context}
    answers = answers_of(question, context, where) if labeled else None
    return QuestionExample(where, columns, id, question=text, context=context, answers=answers)


def answers_of(question: Any, context: str, where: str) -> tuple[Answer, ...]:
    """The answers of an object of SQuAD. Raises `BadRow` for an answer that is not at its place."""
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
