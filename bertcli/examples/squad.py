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
    """An example for each question, with all of its answers; none where it `is_impossible` or lists none.

    The whole file is held in memory. An answer that does not stand where it should makes a `BadRow`, and so
    does an id that another question has, since scores go by id. Raises `UserError` for what is no SQuAD JSON.
    """
    file = parse_json(read_text(path, settings.encoding, "task.encoding"), path)
    ids: set[str] = set()

    def example(found: tuple[str, Any, str]) -> QuestionExample:
        made = _example(*found, str(path), labeled)
        if made.id in ids:
            raise BadRow(f"{made.where}: another question has this id")
        ids.add(made.id)
        return made

    return each(_questions(file, str(path)), example)


def _questions(file: Any, path: str) -> Iterator[tuple[str, Any, str]]:
    """The context of each question, the question's object, and where it stands."""
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
    answers = _answers(question, context, where) if labeled else None
    return QuestionExample(where, columns, id, question=text, context=context, answers=answers)


def _answers(question: Any, context: str, where: str) -> tuple[Answer, ...]:
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
                f"{where}: the answer {answer.text!r} does not stand at character {answer.start} of its "
                f"context; there is {there!r}"
            )
    return tuple(answers)


def _get(value: Any, key: str, kind: Any, where: str) -> Any:
    """Raises `BadRow` where `value` has no such key, or another kind of value under it."""
    if not isinstance(value, dict) or key not in value:
        raise BadRow(f"{where}: no key {key!r}, which SQuAD JSON has there")
    if not isinstance(value[key], kind):
        raise BadRow(f"{where}: {key!r} holds {str(value[key])[:40]!r}, which SQuAD JSON has not there")
    return value[key]
