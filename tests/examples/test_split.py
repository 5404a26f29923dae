"""What is kept to be judged by: the right share, of each class, and nothing that is learned from as well."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.errors import UserError
from bertcli.examples.examples import QuestionExample, TextExample
from bertcli.examples.split import split_dev


def rows(*given: tuple[str, object]) -> list[TextExample]:
    return [TextExample(f"line {i}", {}, text, None, label) for i, (text, label) in enumerate(given)]  # pyright: ignore[reportArgumentType]


MANY = rows(*((f"text {i}", "spam" if i % 10 == 0 else "ham") for i in range(1000)))


def test_labels_keep_their_proportions():
    train, dev = split_dev(MANY, 0.1, seed=1)
    assert (len(train), len(dev)) == (900, 100)
    assert Counter(each.label for each in dev) == {"ham": 90, "spam": 10}


def test_both_sides_keep_the_files_order_and_all_rows():
    train, dev = split_dev(MANY, 0.25, seed=1)
    numbers = {each.where: i for i, each in enumerate(MANY)}
    for side in (train, dev):
        order = [numbers[each.where] for each in side]
        assert order == sorted(order)
    assert {each.where for each in train} | {each.where for each in dev} == set(numbers)


def test_the_seed_decides_and_the_order_of_the_rows_does_not():
    first = {each.where for each in split_dev(MANY, 0.1, seed=1)[1]}
    assert {each.where for each in split_dev(MANY[::-1], 0.1, seed=1)[1]} == first
    assert {each.where for each in split_dev(MANY, 0.1, seed=2)[1]} != first


@given(
    st.lists(st.tuples(st.sampled_from("abcdefghij"), st.sampled_from(["x", "y", "z", 1.0])), max_size=40),
    st.floats(0.05, 0.9),
)
def test_no_text_is_on_both_sides_and_train_keeps_something(given: list, fraction: float):
    examples = rows(*given)
    try:
        train, dev = split_dev(examples, fraction, seed=0)
    except UserError:
        return
    assert not {each.texts for each in train} & {each.texts for each in dev}
    assert len(train) + len(dev) == len(examples)
    assert 0 < len(dev) <= round(fraction * len(examples))
    assert train


def test_every_class_is_learned():
    examples = rows(("a", "rare"), *((f"text {i}", "often") for i in range(9)))
    train, _ = split_dev(examples, 0.9, seed=0)
    assert {each.label for each in train} == {"rare", "often"}


def test_many_small_classes_still_give_their_share():
    examples = rows(*((f"text {i}", f"class {i // 4}") for i in range(400)))
    _, dev = split_dev(examples, 0.1, seed=0)
    assert len(dev) == 40
    assert max(Counter(each.label for each in dev).values()) == 1


def test_questions_of_one_context_stay_together():
    examples = [
        QuestionExample(f"{i}", {}, f"{i}", f"question {i}", f"context {i // 5}", ()) for i in range(100)
    ]
    train, dev = split_dev(examples, 0.2, seed=0)
    assert len(dev) == 20
    assert not {each.context for each in train} & {each.context for each in dev}


def test_pairs_with_a_number_and_one_first_text_stay_together():
    pairs = [TextExample(f"{i}", {}, f"question {i // 5}", f"passage {i}", float(i % 2)) for i in range(100)]
    train, dev = split_dev(pairs, 0.2, seed=0)
    assert len(dev) == 20
    assert not {each.text_a for each in train} & {each.text_a for each in dev}


def test_few_first_texts_are_on_both_sides():
    pairs = [TextExample(f"{i}", {}, f"task {i % 3}", f"answer {i}", float(i)) for i in range(60)]
    train, dev = split_dev(pairs, 0.1, seed=0)
    assert (len(train), len(dev)) == (54, 6)
    assert {each.text_a for each in dev} <= {each.text_a for each in train}


@pytest.mark.parametrize("texts", [["a"], ["a", "b"], ["a", "a", "a", "a", "a"]])
def test_too_few_rows(texts: list[str]):
    with pytest.raises(
        UserError, match=r"task.dev_fraction: 0.2 of \d rows, \d of them different, leaves none"
    ):
        split_dev(rows(*((text, "x") for text in texts)), 0.2, seed=0)
