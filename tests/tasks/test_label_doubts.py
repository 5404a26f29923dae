"""Labels that look like a slip, and labels that a model doubts."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from bertcli.system.errors import Finding, UserError
from bertcli.tasks.data_report import describe
from bertcli.tasks.examples import TaggedExample, TextExample
from bertcli.tasks.label_doubts import label_doubts, suspect_labels
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


@pytest.mark.parametrize(("written", "label"), [("0", "ham"), ("1.0", "1"), (" ham", "ham")])
def test_only_blanks_are_blanks_around_a_label(written: str, label: str) -> None:
    examples = {"train": [TextExample("", {"label": written}, ("a",), label)]}
    found = label_doubts({"train": Counter([label])}, examples, settings())
    assert ["blanks around" in each.problem for each in found] == [True] * (written != written.strip())


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
    other = TextExample(
        "a.tsv, line 4", {"label": "neg"}, ("a",), "neg"
    )  # of JSON, whose rows may lack a key
    for label in ("label", 1):
        (doubt,) = label_doubts({"train": {"neg": 2}}, {"train": [row, other]}, settings(label=label))
        assert doubt.problem == "1 labels of train have blanks around them, first in a.tsv, line 3"


def test_types_of_entities_are_doubted_too() -> None:
    tagged = [TaggedExample("", {}, ("a",), ("a",), (), (tag,)) for tag in ("B-LOC", "B-loc")]
    items = [Item(example, (), None, full_length=3) for example in range(2)]
    lines = describe({"train": tagged}, {"train": items}, words())
    assert lines[-1].startswith("warning: labels that differ only in case,")
    assert "'LOC' (1), 'loc' (1); the model learns each as a class of its own" in lines[-1]


def case(right: Any, **probabilities: float) -> dict[str, Any]:
    return {"where": "", "columns": {}, "right": right, "prediction": {"probabilities": probabilities}}


def test_the_worst_label_comes_first_with_what_the_model_suggests() -> None:
    """Where b has .7 it is below its own mean: the model is not sure enough of it."""
    sure = [case("a", a=0.9, b=0.1)] * 9 + [case("b", a=0.1, b=0.9)] * 9
    found = suspect_labels(
        [*sure, case("a", a=0.15, b=0.85), case("a", a=0.3, b=0.7), case("b", a=0.99, b=0.01)], settings()
    )
    assert [(each["given"], each["suggested"]) for each in found] == [("b", "a"), ("a", "b")]
    assert [each["suggested_probability"] for each in found] == [0.99, 0.85]
    assert [each["given_probability"] for each in found] == [0.01, 0.15]
    assert [each["score"] for each in found] == pytest.approx([0.01 - 0.99, 0.15 - 0.85])


def test_a_label_that_the_model_is_never_sure_of_is_doubted_less() -> None:
    """A rare label has .4 in its own rows, where the other has .6: that is as usual, and no suspect."""
    usual = [case("often", often=0.9, rare=0.1)] * 20 + [case("rare", often=0.6, rare=0.4)] * 5
    found = suspect_labels(
        [*usual, case("rare", often=0.9, rare=0.1), case("often", often=0.6, rare=0.4)], settings()
    )
    assert {(each["given"], each["suggested"]) for each in found} == {("rare", "often"), ("often", "rare")}


def test_a_label_without_rows_is_not_suggested() -> None:
    assert suspect_labels([case("a", a=0.1, b=0.9), case("a", a=0.2, b=0.8)], settings()) == []


def test_of_several_labels_the_worst_one_is_added_or_removed() -> None:
    usual = [case(["a"], a=0.9, b=0.1)] * 9 + [case(["b"], a=0.1, b=0.9)] * 9
    rows = [*usual, case(["a"], a=0.9, b=0.95), case(["a", "b"], a=0.02, b=0.9)]
    found = suspect_labels(rows, settings(multi_label=True))
    assert [(each["given"], each["suggested"]) for each in found] == [
        (["a", "b"], ["b"]),
        (["a"], ["a", "b"]),
    ]
    assert found[0]["given_probability"] == pytest.approx(0.02)
    assert found[0]["suggested_probability"] == pytest.approx(0.98)


def test_only_classes_are_doubted() -> None:
    with pytest.raises(
        UserError, match=r"--suspect-labels: is for type: classification, .* of type: regression"
    ):
        suspect_labels([], settings(type="regression"))
