"""The labels of a task: their order, and those that do not fit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.config.task import TaskSettings
from bertcli.system.errors import UserError
from bertcli.tasks.examples import TaggedExample, TextExample
from bertcli.tasks.labels import check_labels, kept_outputs, label_set
from tests.tasks.reading import questions, settings, words


def texts(*labels) -> list[TextExample]:
    return [TextExample(f"a.tsv, line {i + 2}", {}, ("x",), label) for i, label in enumerate(labels)]


def sentence(*tags: str) -> TaggedExample:
    return TaggedExample("a.conll, line 1", {}, ("",), tags, (), tags)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["spam", "ham", "spam"], ("ham", "spam")),
        (["10", "9", "-1", "0.5"], ("-1", "0.5", "9", "10")),
        (["b", "2", "nan", "10", "a"], ("2", "10", "a", "b", "nan")),
        (["1", "1.0", "01"], ("01", "1", "1.0")),
    ],
)
def test_numbers_by_value_words_sorted(labels: list[str], expected: tuple[str, ...]):
    assert label_set(texts(*labels), settings()) == expected


@given(st.permutations(["b", "a", "10", "9", "inf", "nan", "9.0"]))
def test_the_order_of_the_rows_does_not_matter(labels: list[str]):
    assert label_set(texts(*labels), settings()) == ("9", "9.0", "10", "a", "b", "inf", "nan")


def test_several_labels_a_text():
    assert label_set(texts(("b", "a"), (), ("c",)), settings(multi_label=True)) == ("a", "b", "c")
    assert label_set(texts(("b",), ()), settings(multi_label=True)) == ("b",)


def test_each_type_of_entity_has_both_tags():
    examples = [sentence("O", "B-PER"), sentence("B-LOC", "I-LOC")]
    assert label_set(examples, words()) == ("O", "B-LOC", "I-LOC", "B-PER", "I-PER")
    assert label_set([sentence("B", "I")], words()) == ("O", "B", "I")


@pytest.mark.parametrize("given", [settings(type="regression"), questions()])
def test_tasks_whose_outputs_have_no_names(given: TaskSettings):
    assert label_set(texts(1.0, 2.0), given) == ()
    check_labels(texts(1.0), (), given)


@pytest.mark.parametrize(
    ("examples", "given", "message"),
    [
        (texts("ham", "ham"), settings(), "task.train: every row has the label 'ham'; does task.label name"),
        (
            texts("spam", "spam"),
            settings(label_names=["ham", "spam"]),
            "task.train: every row has the label 'spam'",
        ),
        (texts((), ()), settings(multi_label=True), "task.train: every row has no label"),
        ([sentence("O", "O")], words(), "task.train: every word has the tag O"),
    ],
)
def test_nothing_to_tell_apart(examples: list, given: TaskSettings, message: str):
    with pytest.raises(UserError, match=message):
        label_set(examples, given)


def test_labels_that_the_training_file_lacks():
    dev = texts("ham", "unsure", "spam", "unsure", "?")
    with pytest.raises(UserError) as error:
        check_labels(dev, ("ham", "spam"), settings())
    assert str(error.value).split("\n")[1:] == [
        "  'unsure': 2 times, first in a.tsv, line 3",
        "  '?': 1 times, first in a.tsv, line 6",
    ]
    assert "do not occur in the training file (ham, spam)" in str(error.value)
    check_labels(dev[:1], ("ham", "spam"), settings())


def test_of_many_labels_the_first_are_named():
    with pytest.raises(UserError, match="and 30 more") as error:
        check_labels(texts(*map(str, range(50))), tuple(map(chr, range(97, 122))), settings())
    assert ", ...)" in str(error.value)


def test_entities_that_the_training_file_lacks():
    with pytest.raises(UserError, match=r"'B-ORG': 1 times, first in a.conll, line 1"):
        check_labels([sentence("O", "B-ORG")], ("O", "B-PER", "I-PER"), words())


def test_several_labels_are_each_checked():
    with pytest.raises(UserError, match="'c': 1 times"):
        check_labels(texts(("a", "c")), ("a", "b"), settings(multi_label=True))


@pytest.mark.parametrize(
    ("after", "line"),
    [
        ("bca", "kept the outputs of b, c, a, in another order"),
        ("adb", "kept the outputs of a, b; new: d; gone: c"),
        ("abcd", "kept the outputs of a, b, c; new: d"),
        ("a", "kept the outputs of a; gone: b, c"),
    ],
)
def test_what_became_of_the_outputs(after: str, line: str):
    assert kept_outputs("abc", after) == line
