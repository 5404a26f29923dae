"""What is said of the data before the run."""

from __future__ import annotations

from bertcli.tasks.data_report import describe, figures
from bertcli.tasks.examples import Answer, ChoiceExample, QuestionExample, TaggedExample, TextExample
from bertcli.tasks.supervised import Item
from tests.tasks.reading import choices, questions, settings, words


def row(text: str, label, where: str = "") -> TextExample:
    return TextExample(where, {}, (text,), label)


TRAIN = [
    row("a", "ham", "line 1"),
    row("b", "spam", "line 2"),
    row("a", "ham", "line 3"),
    row("a", "spam", "line 4"),
]
DEV = [row("b", "spam"), row("c", "ham"), row("c", "ham")]
BOTH = {"train": TRAIN, "dev": DEV}


def items(*lengths: int, number: int = 0) -> list[Item]:
    """An item for each of these full lengths; the first example has more of them, up to `number` in all."""
    own = [Item(example, (), None, full_length=length) for example, length in enumerate(lengths)]
    return own + own[:1] * (number - len(own))


ITEMS = {"train": items(10, 20, 30, 200), "dev": items(5, 5, 5)}


def train_alone(examples):
    """The arguments of a file without dev data, its rows 5 tokens each."""
    return {"train": examples}, {"train": items(*[5] * len(examples))}


def test_figures():
    assert figures(BOTH, ITEMS, settings()) == {
        "rows": {"train": 4, "dev": 3},
        "counts": {"train": {"ham": 2, "spam": 2}, "dev": {"ham": 2, "spam": 1}},
        "lengths": {
            "train": {"median": 25, "p95": 174, "max": 200, "max_length": 128, "longer": 0.25},
            "dev": {"median": 5, "p95": 5, "max": 5, "max_length": 128, "longer": 0.0},
        },
        "duplicates": {"train": 2, "dev": 1, "across": 1},
        "contradictions": [{"text": "a", "where": ["line 1", "line 4"], "labels": ["ham", "spam"]}],
    }


def test_lines():
    assert describe(BOTH, ITEMS, settings()) == [
        "train: 4 rows; ham 2 (50.0%), spam 2 (50.0%)",
        "dev: 3 rows; ham 2 (66.7%), spam 1 (33.3%)",
        "lengths: median 25 tokens, 95 % up to 174, longest 200; 25.0% are cut at 128 (task.max_length)",
        "lengths of dev: median 5 tokens, 95 % up to 5, longest 5",
        "warning: 2 rows of train repeat the text of another one",
        "warning: 1 rows of dev repeat the text of another one",
        "warning: 1 rows of dev are in train as well: scores will be too good",
        "warning: one text, several labels: 1 texts of train",
        "  'a': line 1; line 4",
        "warning: 25.0% of the rows of train are cut at 128 tokens; set task.windows: mean, which reads all "
        "of them in windows, or raise task.max_length, as far as the model reads (174 holds 95 % of the "
        "rows)",
    ]


def test_without_dev_data_and_without_anything_odd():
    train = [row(f"text {i}", f"class {i % 20:02}") for i in range(40)]
    lines = describe(*train_alone(train), settings())
    assert len(lines) == 2
    assert lines[0].startswith("train: 40 rows; class 00 2 (5.0%), class 01 2 (5.0%)")
    assert lines[0].endswith("class 11 2 (5.0%), 8 more")
    assert lines[1] == "lengths: median 5 tokens, 95 % up to 5, longest 5"
    assert figures(*train_alone(train), settings())["duplicates"] == {"train": 0}


def test_numbers_have_a_range_and_may_differ_for_one_text():
    found = figures(*train_alone([row("a", 1.0), row("a", 4.0)]), settings(type="regression"))
    assert found["values"] == {"train": {"min": 1.0, "mean": 2.5, "max": 4.0}}
    assert found["contradictions"] == []
    lines = describe(*train_alone([row("a", 1.0), row("b", 4.0)]), settings(type="regression"))
    assert lines[0] == "train: 2 rows; values from 1 to 4, mean 2.5"


def test_several_labels_in_any_order_do_not_contradict():
    examples = [row("a", ("x", "y")), row("a", ("y", "x")), row("b", ())]
    found = figures(*train_alone(examples), settings(multi_label=True))
    assert found["counts"]["train"] == {"x": 2, "y": 2}
    assert found["contradictions"] == []


def test_what_is_counted_of_the_other_tasks():
    tagged = [TaggedExample("", {}, ("New York",), ("New", "York"), (), ("B-LOC", "I-LOC"))]
    assert figures(*train_alone(tagged), words())["counts"]["train"] == {"LOC": 1}
    asked = [QuestionExample("", {}, (str(i), "c"), str(i), (Answer("c", 0),) if i else ()) for i in range(3)]
    counts = figures(*train_alone(asked), questions())["counts"]["train"]
    assert counts == {"answered": 2, "without an answer": 1}
    chosen = [ChoiceExample("", {}, ("q",), ("a", "b"), 1)]
    assert figures(*train_alone(chosen), choices())["counts"]["train"] == {"choice 1": 1}


def test_of_long_texts_windows_are_counted_and_rows_that_have_too_many():
    rows = [row("a", "ham"), row("b", "spam")]
    own = [Item(0, (), None, full_length=9), Item(1, (), None, dropped=7, full_length=300, windows=2)]
    assert describe({"train": rows}, {"train": own}, settings(windows="mean")) == [
        "train: 2 rows in 3 windows; ham 1 (50.0%), spam 1 (50.0%)",
        "lengths: median 154 tokens, 95 % up to 285, longest 300; 50.0% are read in several windows of 128 "
        "(task.max_length), and 50.0% are cut after the last one (task.max_windows)",
    ]


def test_windows_are_counted_beside_rows():
    tagged = [TaggedExample("", {}, ("New York",), ("New", "York"), (), ("B-LOC", "I-LOC"))] * 3
    windows = {"train": items(1000, 20, 300, number=12)}
    assert figures({"train": tagged}, windows, words())["windows"] == {"train": 12}
    assert describe({"train": tagged}, windows, words())[:2] == [
        "train: 3 rows in 12 windows; LOC 3 (100.0%)",
        "lengths: median 300 tokens, 95 % up to 930, longest 1,000; 66.7% are read in several windows of 128 "
        "(task.max_length)",
    ]
