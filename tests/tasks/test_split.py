"""What is kept to be judged by: the right share, of each class, and nothing that is learned from as well."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.system.errors import UserError
from bertcli.tasks.examples import QuestionExample, TaggedExample, TextExample
from bertcli.tasks.split import _dev_rows, split_dev
from tests.tasks.reading import rows

MANY = rows(*((f"text {i}", "spam" if i % 10 == 0 else "ham") for i in range(1000)))


def test_labels_keep_their_proportions():
    train, dev = split_dev(MANY, 0.1, seed=1)
    assert (len(train), len(dev)) == (900, 100)
    assert Counter(each.answer for each in dev) == {"ham": 90, "spam": 10}


def test_each_of_several_labels_keeps_its_proportion() -> None:
    several = rows(*((f"text {i}", ("often", "rare") if i % 20 == 0 else ("often",)) for i in range(400)))
    for seed in range(6):
        _, dev = split_dev(several, 0.1, seed=seed)
        assert Counter(label for each in dev for label in each.names) == {"often": 40, "rare": 2}


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
def test_no_text_is_on_both_sides_if_another_is_there_and_train_keeps_something(given: list, fraction: float):
    examples = rows(*given)
    try:
        train, dev = split_dev(examples, fraction, seed=0)
    except UserError:
        return
    if {each.texts for each in train} & {each.texts for each in dev}:
        assert not _dev_rows(examples, fraction, 0, contents=[each.texts for each in examples])
    assert len(train) + len(dev) == len(examples)
    assert 0 < len(dev) <= round(fraction * len(examples))
    assert train


def test_every_class_is_learned():
    examples = rows(("a", "rare"), *((f"text {i}", "often") for i in range(9)))
    train, _ = split_dev(examples, 0.9, seed=0)
    assert {each.answer for each in train} == {"rare", "often"}


def test_many_small_classes_still_give_their_share():
    examples = rows(*((f"text {i}", f"class {i // 4}") for i in range(400)))
    _, dev = split_dev(examples, 0.1, seed=0)
    assert len(dev) == 40
    assert max(Counter(each.answer for each in dev).values()) == 1


def test_questions_of_one_context_stay_together():
    examples = [
        QuestionExample(f"{i}", {}, (f"question {i}", f"context {i // 5}"), f"{i}", ()) for i in range(100)
    ]
    train, dev = split_dev(examples, 0.2, seed=0)
    assert len(dev) == 20
    assert not {each.content for each in train} & {each.content for each in dev}


def test_pairs_with_a_number_and_one_first_text_stay_together():
    pairs = [
        TextExample(f"{i}", {}, (f"question {i // 5}", f"passage {i}"), float(i % 2)) for i in range(100)
    ]
    train, dev = split_dev(pairs, 0.2, seed=0)
    assert len(dev) == 20
    assert not {each.texts[0] for each in train} & {each.texts[0] for each in dev}


def test_few_first_texts_are_on_both_sides():
    pairs = [TextExample(f"{i}", {}, (f"task {i % 3}", f"answer {i}"), float(i)) for i in range(60)]
    train, dev = split_dev(pairs, 0.1, seed=0)
    assert (len(train), len(dev)) == (54, 6)
    assert {each.texts[0] for each in dev} <= {each.texts[0] for each in train}


@pytest.mark.parametrize("rare", ["rare", ("often", "rare"), None])
@pytest.mark.parametrize("seed", range(1, 9))
def test_what_one_row_alone_has_is_learned(rare: str | tuple[str, ...] | None, seed: int):
    often = ("often",) if isinstance(rare, tuple) else "often"
    examples: list = rows(*((f"text {i}", rare if i == 7 else often) for i in range(20)))
    if rare is None:
        examples = [
            TaggedExample(f"{i}", {}, (f"text {i}",), ("a",), ((0, 1),), tags=("I-X" if i == 7 else "B-X",))
            for i in range(20)
        ]
    train, dev = split_dev(examples, 0.9, seed=seed)
    assert examples[7] in train
    assert len(dev) >= 17


def test_a_group_that_alone_has_a_label_is_learned_as_a_whole():
    pairs = [
        TextExample(f"{i}", {}, (f"question {i // 5}", f"passage {i}"), ("x", "rare") if i == 42 else ("x",))
        for i in range(100)
    ]
    for seed in range(8):
        train, dev = split_dev(pairs, 0.5, seed=seed)
        assert {pairs[i].where for i in range(40, 45)} <= {each.where for each in train}
        assert 45 <= len(dev) <= 50


def test_texts_with_two_labels_keep_both_in_training():
    examples = rows(("same", "a"), ("same", "b"), *((f"text {i}", "a") for i in range(8)))
    for seed in range(8):
        assert {each.answer for each in split_dev(examples, 0.5, seed=seed)[0]} == {"a", "b"}


def test_copies_of_few_texts_are_on_both_sides_rather_than_none_in_dev():
    examples = rows(("rare", "rare"), *[("often", "often")] * 40)
    for seed in range(1, 9):
        train, dev = split_dev(examples, 0.2, seed=seed)
        assert [each.answer for each in dev] == ["often"] * 8
        assert train[0].answer == "rare"


@pytest.mark.parametrize("texts", [["a"], ["a", "b"], ["a", "a", "a", "a", "a"]])
def test_too_few_rows(texts: list[str]):
    with pytest.raises(
        UserError, match=r"task.dev_fraction: 0.2 of \d rows, \d of them different, leaves none"
    ):
        split_dev(rows(*((text, "x") for text in texts)), 0.2, seed=0)
