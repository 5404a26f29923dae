"""What is said of the data before the run."""

from __future__ import annotations

from bertcli.labelled.examples import Answer, ChoiceExample, QuestionExample, TaggedExample, TextExample
from bertcli.labelled.report import describe, figures
from tests.labelled.reading import choices, questions, settings, words


def row(text: str, label, where: str = "") -> TextExample:
    return TextExample(where, {}, text, None, label)


TRAIN = [
    row("a", "ham", "line 1"),
    row("b", "spam", "line 2"),
    row("a", "ham", "line 3"),
    row("a", "spam", "line 4"),
]
DEV = [row("b", "spam"), row("c", "ham"), row("c", "ham")]
LENGTHS = [10, 20, 30, 200]


def test_figures():
    assert figures(TRAIN, DEV, LENGTHS, settings()) == {
        "rows": {"train": 4, "dev": 3},
        "counts": {"train": {"ham": 2, "spam": 2}, "dev": {"ham": 2, "spam": 1}},
        "lengths": {"median": 25, "p95": 174, "max": 200, "max_length": 128, "cut": 0.25},
        "duplicates": {"train": 2, "dev": 1, "across": 1},
        "contradictions": [{"text": "a", "where": ["line 1", "line 4"], "labels": ["ham", "spam"]}],
    }


def test_lines():
    assert describe(TRAIN, DEV, LENGTHS, settings()) == [
        "train: 4 rows; ham 2 (50.0%), spam 2 (50.0%)",
        "dev: 3 rows; ham 2 (66.7%), spam 1 (33.3%)",
        "lengths: median 25 tokens, 95 % up to 174, longest 200; 25.0% are cut at 128 (task.max_length)",
        "warning: 2 rows of train repeat the text of another one",
        "warning: 1 rows of dev repeat the text of another one",
        "warning: 1 rows of dev are in train as well: scores come out too good",
        "warning: one text, several labels: 1 texts of train",
        "  'a': line 1; line 4",
    ]


def test_without_dev_data_and_without_anything_odd():
    train = [row(f"text {i}", f"class {i % 20:02}") for i in range(40)]
    lines = describe(train, None, [5] * 40, settings())
    assert len(lines) == 2
    assert lines[0].startswith("train: 40 rows; class 00 2 (5.0%), class 01 2 (5.0%)")
    assert lines[0].endswith("class 11 2 (5.0%), 8 more")
    assert lines[1] == "lengths: median 5 tokens, 95 % up to 5, longest 5"
    assert figures(train, None, [5] * 40, settings())["duplicates"] == {"train": 0}


def test_numbers_have_a_range_and_may_differ_for_one_text():
    found = figures([row("a", 1.0), row("a", 4.0)], None, [5, 5], settings(type="regression"))
    assert found["values"] == {"train": {"min": 1.0, "mean": 2.5, "max": 4.0}}
    assert found["contradictions"] == []
    lines = describe([row("a", 1.0), row("b", 4.0)], None, [5, 5], settings(type="regression"))
    assert lines[0] == "train: 2 rows; values from 1 to 4, 2.5 in the mean"


def test_several_labels_in_any_order_do_not_contradict():
    examples = [row("a", ("x", "y")), row("a", ("y", "x")), row("b", ())]
    found = figures(examples, None, [5] * 3, settings(multi_label=True))
    assert found["counts"]["train"] == {"x": 2, "y": 2}
    assert found["contradictions"] == []


def test_what_is_counted_of_the_other_tasks():
    tagged = [TaggedExample("", {}, "New York", ("New", "York"), (), ("B-LOC", "I-LOC"))]
    assert figures(tagged, None, [5], words())["counts"]["train"] == {"LOC": 1}
    asked = [QuestionExample("", {}, str(i), str(i), "c", (Answer("c", 0),) if i else ()) for i in range(3)]
    counts = figures(asked, None, [5] * 3, questions())["counts"]["train"]
    assert counts == {"answered": 2, "without an answer": 1}
    chosen = [ChoiceExample("", {}, "q", None, ("a", "b"), 1)]
    assert figures(chosen, None, [5], choices())["counts"]["train"] == {"choice 1": 1}
