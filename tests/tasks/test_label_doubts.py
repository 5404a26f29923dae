"""Labels that look like a slip."""

from __future__ import annotations

from collections import Counter

import pytest

from bertcli.system.errors import Finding
from bertcli.tasks.data_report import describe
from bertcli.tasks.examples import TaggedExample, TextExample
from bertcli.tasks.label_doubts import label_doubts
from bertcli.tasks.supervised import Item
from tests.tasks.reading import settings, words


def doubts(train: list[str], dev: list[str] | None = None) -> list[Finding]:
    splits = {"train": train} if dev is None else {"train": train, "dev": dev}
    counts = {name: Counter(labels) for name, labels in splits.items()}
    examples = {
        name: [TextExample("", {"label": each}, ("a",), each) for each in labels]
        for name, labels in splits.items()
    }
    return label_doubts(counts, examples, settings())


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["pos", "neg", "NaN", "NaN", "None"], "a missing one: 'NaN' (2), 'None' (1)"),
        (["0", "1", "nan"], "a missing one: 'nan' (1)"),
        (
            ["pos", "neg", "neg", "NEG"],
            "case, blanks or the spelling of a number: 'neg' (2), 'NEG' (1)",
        ),
        (["pos", "very bad", "very  bad", "very\u200b bad"], "a number: 'very  bad' (1), 'very bad' (1)"),
        (["0", "1", "1.0"], "of a number: '1' (1), '1.0' (1)"),
        (["a", "b", "a|b"], "labels with '|' between labels that also stand alone: 'a|b' (1)"),
        (["a", "b", "b, a"], "labels with ',' between labels that also stand alone: 'b, a' (1)"),
        (["pos", "neg", "neg", "0"], "of two kinds, numbers ('0' (1)) beside words ('neg' (2), 'pos' (1))"),
    ],
)
def test_a_slip_is_said(labels: list[str], said: str) -> None:
    (doubt,) = doubts(labels)
    assert said in doubt.problem
    assert 0 < doubt.share <= 1


@pytest.mark.parametrize(
    "labels",
    [["ham", "spam"], ["0", "1", "2"], ["-1", "1"], ["a b", "ab c"], ["A", "B", "A+"], ["sport", "sci/tech"]],
)
def test_good_labels_are_not_doubted(labels: list[str]) -> None:
    assert doubts(labels, labels) == []


def test_labels_of_train_alone_are_said() -> None:
    (doubt,) = doubts(["a", "b", "b", "c"], ["a"])
    assert (doubt.problem, doubt.share) == ("labels of train that dev does not have: 'b' (2), 'c' (1)", 0.75)


def test_blanks_around_labels_are_said() -> None:
    row = TextExample("a.tsv, line 3", {"text": "a", "label": " neg"}, ("a",), "neg")
    for label in ("label", 1):
        (doubt,) = label_doubts({"train": {"neg": 1}}, {"train": [row]}, settings(label=label))
        assert doubt.problem == "1 labels of train have blanks around them, first in a.tsv, line 3"


def test_types_of_entities_are_doubted_too() -> None:
    tagged = [TaggedExample("", {}, ("a",), ("a",), (), (tag,)) for tag in ("B-LOC", "B-loc")]
    items = [Item(example, (), None, full_length=3) for example in range(2)]
    lines = describe({"train": tagged}, {"train": items}, words())
    assert lines[-1].startswith("warning: labels that differ only in case,")
    assert "'LOC' (1), 'loc' (1); the model learns each as a class of its own" in lines[-1]
