"""What scores are worth beside an answer that reads no text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bertcli.tasks.answers import answer_scores
from bertcli.tasks.entities import entity_scores
from bertcli.tasks.examples import (
    Answer,
    ChoiceExample,
    QuestionExample,
    SimilarExample,
    TaggedExample,
    TextExample,
)
from bertcli.tasks.scores import classification_scores, correlation_scores, multi_label_scores
from bertcli.tasks.supervised import build_task
from bertcli.tasks.verdict import Verdict
from tests.tasks.reading import choices, questions, settings, words


def verdict(given: Any, examples: list[Any], metrics: Any) -> Verdict:
    return build_task(given, ()).verdict(examples, metrics)


def texts(labels: list[Any]) -> list[Any]:
    return [TextExample("", {}, ("a",), label) for label in labels]


def of_labels(truth: str, given: str) -> Verdict:
    names = sorted(set(truth + given))
    metrics = classification_scores([names.index(c) for c in truth], [names.index(c) for c in given], names)
    return verdict(settings(), texts(list(truth)), metrics)


def test_the_most_frequent_label() -> None:
    truth = "h" * 80 + "s" * 20
    same = of_labels(truth, "h" * 100)
    assert not same.better
    assert same.baseline == {"accuracy": 0.8}
    assert same.line.startswith(
        "warning: accuracy 0.8, which is no better than always answering 'h' (0.8): nothing useful was "
        "learned. What may help: raise training.epochs"
    )
    assert "class_weights: balanced" in same.line
    assert of_labels(truth, truth).line == "verdict: accuracy 1 is 0.2 above always answering 'h' (0.8)"
    lucky = of_labels(truth, "h" * 79 + "s" + "s" * 2 + "h" * 18)
    assert "within the noise of 100 rows" in lucky.text
    balanced = of_labels(truth, "h" * 60 + "s" * 20 + "s" * 18 + "h" * 2)
    assert balanced.better
    assert "the answers correlate with the labels: Matthews correlation" in balanced.text
    assert not of_labels("hhhh", "hhhs").better


def test_a_model_without_a_mistake_is_better_or_the_rows_are_too_few() -> None:
    assert of_labels("h" * 76 + "s" * 4, "h" * 76 + "s" * 4).line == (
        "verdict: accuracy 1 is 0.05 above always answering 'h' (0.95), within the noise of 80 rows, but the "
        "answers correlate with the labels: Matthews correlation 1, where that gives 0"
    )
    few = of_labels("hhhs", "hhhs")
    assert few.line.startswith(
        "warning: accuracy 1 beside always answering 'h' (0.75): 4 rows are too few to tell whether anything "
        "was learned. What may help: measure on more rows"
    )
    assert "too few to tell" in of_labels("hhhs", "hhhh").text
    alone = verdict(settings(multi_label=True), texts([("a",)] * 9), {"micro_f1": 1.0})
    assert "is right in every row: no score can show what was learned" in alone.text


def perfect(kind: str, most: int, rare: int) -> Verdict:
    """The verdict on the right answers to `most` rows of one kind, and `rare` ones of another."""
    rows, numbers = most + rare, [0.0] * most + [1.0] * rare
    if kind == "labels":
        return of_labels("h" * most + "s" * rare, "h" * most + "s" * rare)
    if kind == "label sets":
        sets = texts([("a",)] * most + [("b",)] * rare)
        return verdict(settings(multi_label=True), sets, {"micro_f1": 1.0})
    if kind == "numbers":
        scores = correlation_scores(numbers, numbers)
        return verdict(settings(type="regression"), texts(numbers), scores)
    if kind == "questions":
        found, none = QuestionExample("", {}, ("q", "c"), "", (Answer("c", 0),)), ()
        asked: list[Any] = [replace(found, answers=none)] * most + [found] * rare
        gold = [[answer.text for answer in example.answers] for example in asked]
        return verdict(questions(), asked, answer_scores(gold, ["".join(right) for right in gold]))
    if kind == "choices":
        chosen: list[Any] = [ChoiceExample("", {}, ("a",), ("x", "y"), n >= most) for n in range(rows)]
        return verdict(choices(), chosen, {"accuracy": 1.0})
    vectors = {"type": "sentence-embedding", "text": ["a", "b"]}
    pair = SimilarExample("", {}, ("a", "b"), None)
    if kind == "texts":
        return verdict(settings(**vectors, label=None), [pair] * rows, {"candidates": rows, "mrr": 1.0})
    scored: list[Any] = [replace(pair, score=number) for number in numbers]
    return verdict(settings(**vectors, label="c"), scored, {"spearman": 1.0})


@pytest.mark.parametrize(
    "kind", ["labels", "label sets", "numbers", "questions", "choices", "texts", "scored texts"]
)
@pytest.mark.parametrize("rare", [1, 2, 3, 4, 5, 20])
def test_no_score_without_a_mistake_is_called_no_better(kind: str, rare: int) -> None:
    for most in (1, 2, 5, 16, 76, 400):
        found = perfect(kind, most, rare)
        said = "too few to tell" in found.text or "no score can show" in found.text
        assert found.better is not said, (most, found.text)
        assert "no better" not in found.text


@pytest.mark.parametrize(("most", "others"), [(13, 10), (15, 7), (444, 428)])
def test_a_constant_answer_is_no_better_at_any_number_of_rows(most: int, others: int) -> None:
    found = of_labels("h" * most + "s" * others, "h" * (most + others))
    assert not found.better
    assert "no better than always answering 'h'" in found.text


def test_the_most_frequent_labels_of_several() -> None:
    truth = [("a",)] * 60 + [("a", "b")] * 40
    wanted = [["a" in labels, "b" in labels] for labels in truth]
    for given, better in (([[True, False]] * 100, False), (wanted, True)):
        metrics = multi_label_scores(wanted, given, ["a", "b"])
        found = verdict(settings(multi_label=True), texts(truth), metrics)
        assert found.better == better
        assert found.baseline == {"micro_f1": pytest.approx(200 / 240)}
    nothing = verdict(settings(multi_label=True), texts([()]), {"micro_f1": 0.0})
    assert nothing.text == "no row has a label: no score can show what was learned"


def test_the_mean_value() -> None:
    truth = [float(number % 10) for number in range(100)]
    for given, better, said in (
        ([4.5] * 100, False, "no better than always answering the mean value (8.25, 0)"),
        ([value + 0.5 for value in truth], True, "97.0% less error than"),
        ([value / 100 for value in truth], True, "the order is learned, but not the scale"),
        ([-value for value in truth], False, "no better than"),
    ):
        found = verdict(settings(type="regression"), texts(truth), correlation_scores(truth, given))
        assert (found.better, said in found.text) == (better, True), found.text
    constant = verdict(settings(type="regression"), texts([2.0, 2.0]), correlation_scores([2, 2], [1, 3]))
    assert not constant.better


def test_no_entity_no_answer_and_chance() -> None:
    tags = [("B-x", "O")] * 3
    sentences: list[Any] = [TaggedExample("", {}, ("a b",), ("a", "b"), (), each) for each in tags]
    outside = verdict(words(), sentences, entity_scores(tags, [("O", "O")] * 3))
    assert outside.text.startswith("no entity was found correctly: F1 0")
    assert verdict(words(), sentences, entity_scores(tags, tags)).better

    answered: list[Any] = [QuestionExample("", {}, ("q", "c"), "", (Answer("c", 0),))] * 4
    for answers, better in ((["x"] * 4, False), (["c"] * 4, True)):
        assert verdict(questions(), answered, answer_scores([["c"]] * 4, answers)).better == better
    half: list[Any] = answered + [QuestionExample("", {}, ("q", "c"), "", ())] * 4
    none = verdict(questions(), half, answer_scores([["c"]] * 4 + [[]] * 4, [""] * 8))
    assert (none.better, none.baseline) == (False, {"exact_match": 50.0})

    asked: list[Any] = [ChoiceExample("", {}, ("a",), ("x", "y"), n % 2) for n in range(100)]
    assert not verdict(choices(), asked, {"accuracy": 0.52}).better
    assert verdict(choices(), asked, {"accuracy": 0.8}).better
