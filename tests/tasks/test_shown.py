"""Marked spans: entities found, missed, invented or with other ends; answers beside the right ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from bertcli.tasks.answers import Answered, answer_passages
from bertcli.tasks.classification import Classified
from bertcli.tasks.entities import Entity, Tagged, entity_passages
from bertcli.tasks.examples import Answer, QuestionExample, TaggedExample, TextExample
from bertcli.tasks.shown import LONGEST, Passage, Prediction


def tagged(words: list[str], tags: list[str], text: str | None = None) -> TaggedExample:
    text = text or " ".join(words)
    spans, start = [], 0
    for word in words:
        start = text.index(word, start)
        spans.append((start, start + len(word)))
        start += len(word)
    return TaggedExample("here", {}, (text,), tuple(words), spans=tuple(spans), tags=tuple(tags))


def answer(tags: list[str], *scores: float) -> Tagged:
    return Tagged(tuple(tags), tuple(Entity("", "", 0, end=0, score=score) for score in scores))


def marks(passages: list[Passage]) -> list[tuple[str, str, str]]:
    return [(piece.kind, piece.text, piece.note) for piece in passages[0].pieces if piece.kind]


def test_entities_are_found_missed_invented_or_other() -> None:
    words = ["Ann", "Lee", "met", "Bo", "in", "New", "York", "City", "today"]
    right = ["B-PER", "I-PER", "O", "B-PER", "O", "B-LOC", "I-LOC", "I-LOC", "O"]
    given = ["B-PER", "I-PER", "O", "O", "O", "B-ORG", "I-ORG", "I-ORG", "B-LOC"]
    passages, sureness = entity_passages(tagged(words, right), answer(given, 0.9, 0.7, 0.6))
    assert marks(passages) == [
        ("both", "Ann Lee", "PER"),
        ("right", "Bo", "PER"),
        ("other", "New York City", "LOC → ORG"),
        ("given", "today", "LOC"),
    ]
    assert sureness == 0.7
    assert "".join(piece.text for piece in passages[0].pieces) == " ".join(words)


def test_only_missed_entities_have_no_score() -> None:
    passages, sureness = entity_passages(tagged(["Bo", "ran"], ["B-PER", "O"]), answer(["O", "O"]))
    assert (marks(passages), sureness) == ([("right", "Bo", "PER")], 0.0)


def test_a_long_text_is_cut_around_its_first_mistake() -> None:
    words = ["word"] * 300 + ["Bo"] + ["word"] * 300
    passages, _ = entity_passages(
        tagged(words, ["O"] * 300 + ["B-PER"] + ["O"] * 300), answer(["O"] * len(words))
    )
    shown = "".join(piece.text for piece in passages[0].pieces)
    assert marks(passages) == [("right", "Bo", "PER")]
    assert len(shown) <= LONGEST + 2
    assert shown[0] == shown[-1] == "…"


CONTEXT = "The castle stands near the river."


def question(context: str, *answers: str) -> QuestionExample:
    spans = tuple(Answer(each, context.index(each)) for each in answers)
    return QuestionExample("here", {}, ("Where?", context), id="1", answers=spans)


def given(context: str, text: str) -> Answered:
    start = context.index(text) if text else None
    end = None if start is None else start + len(text)
    return Answered(text, start, end, score=0.5, best=text, null_difference=0.0)


@pytest.mark.parametrize(
    ("right", "said", "pieces"),
    [
        ("near the river", "castle", [("given", "castle"), ("right", "near the river")]),
        ("near the river", "the river", [("right", "near "), ("both", "the river")]),
        ("near the river", "near the river", [("both", "near the river")]),
        ("castle", "", [("right", "castle")]),
    ],
)
def test_answers_are_marked(right: str, said: str, pieces: list[tuple[str, str]]) -> None:
    passages = answer_passages(question(CONTEXT, right), given(CONTEXT, said))
    assert [passage.name for passage in passages] == ["question", "context"]
    assert [(piece.kind, piece.text) for piece in passages[1].pieces if piece.kind] == pieces
    assert "".join(piece.text for piece in passages[1].pieces) == CONTEXT


def test_answers_far_apart_have_an_excerpt_each() -> None:
    context = f"{CONTEXT} {'It rained. ' * 200}The end."
    passages = answer_passages(question(context, "castle"), given(context, "The end"))
    assert [passage.name for passage in passages] == ["question", "context", "context"]
    assert all(sum(len(piece.text) for piece in each.pieces) <= LONGEST + 2 for each in passages)


def test_a_question_without_an_answer_has_its_beginning() -> None:
    passages = answer_passages(question(CONTEXT), given(CONTEXT, ""))
    assert [piece.text for piece in passages[1].pieces] == [CONTEXT]


def test_entities_are_displayed_in_the_whole_text_with_their_probability() -> None:
    text: str = "wide " * 200 + "Bo met"
    entities = (Entity("Bo", "PER", 1000, end=1002, score=0.5), Entity("met", "", 1003, end=1006, score=1.0))
    words = [*text.split()]
    shown = Tagged(("O", "B-PER", "B"), entities).display(tagged(words, ["O"] * 202))
    assert shown.answer == "2 entities"
    assert marks(list(shown.passages)) == [("both", "Bo", "PER 50.0%"), ("both", "met", "entity 100.0%")]
    assert "".join(piece.text for piece in shown.passages[0].pieces) == text
    assert answer(["O"]).display(tagged(["Bo"], ["O"])).answer == "no entities"


def test_answers_are_displayed_in_the_whole_context() -> None:
    example = QuestionExample("here", {}, ("Who?", "wide " * 200 + "Bo"), id="1", answers=None)
    shown = Answered("Bo", 1000, 1002, score=0.5, best="Bo", null_difference=0.0).display(example)
    assert (shown.answer, shown.probabilities) == ("Bo", [("Bo", 0.5)])
    assert marks(list(shown.passages)) == [("both", "Bo", "")]
    assert "".join(piece.text for piece in shown.passages[0].pieces) == example.texts[1]
    shown = Answered("", None, None, score=0.9, best="Bo", null_difference=1.0).display(example)
    assert (shown.answer, marks(list(shown.passages))) == ("no answer in the text", [])


def test_labels_are_displayed_with_the_likeliest_first() -> None:
    logits, example = np.log(np.array([1.0, 3.0, 2.0])), TextExample("here", {}, ("a text",), label=None)
    shown = Classified(("b",), ("a", "b", "c"), logits, multi_label=False).display(example)
    assert shown.answer == "b"
    assert [name for name, _ in shown.probabilities] == ["b", "c", "a"]
    assert shown.probabilities[0][1] == pytest.approx(0.5)
    assert Classified((), ("a", "b", "c"), logits, multi_label=True).display(example).answer == "no label"


@dataclass(frozen=True)
class Plain(Prediction):
    kind: str
    size: int


def test_what_a_task_does_not_display_is_shown_by_its_fields() -> None:
    assert Plain("red", 3).display(None).answer == "kind red, size 3"
