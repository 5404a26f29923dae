"""What the columns of a table can be, by their values and names."""

from __future__ import annotations

from typing import Any

import pytest

from bertcli.tasks.columns import Column, columns_of, label_columns, numbered_groups, text_pair

WORDS = [f"some words of row {number}" for number in range(9)]


def column(name: str, values: list[Any]) -> Column:
    return Column(name, values, len(values))


def test_cells_without_a_value_are_left_out_and_counted() -> None:
    (found,) = columns_of([{"text": "a b"}, {"text": None}, {"text": "  "}, {}])
    assert (found.values, found.rows) == (["a b"], 4)


@pytest.mark.parametrize(
    ("values", "can"),
    [
        (["ham", "spam", "ham"], True),
        (["ham", "ham", "ham"], False),
        (["a", "b", "c"], False),  # as many labels as rows
        ([1, 0, 1], True),
        ([1, 2, 3], False),  # counts the rows
        ([3, 1, 2], True),
    ],
)
def test_labels_are_few_different_values(values: list[Any], can: bool) -> None:
    assert column("x", values).can_be_label == can


def test_a_name_makes_numbers_that_count_rows_a_label() -> None:
    assert column("Score", [1, 2, 3]).can_be_label


def test_the_named_column_is_the_likeliest_label() -> None:
    found = label_columns([column("part", [0, 1, 0]), column("stars", [1, 2, 1])], texts=[])
    assert [each.name for each in found] == ["stars", "part"]


def test_names_that_differ_in_a_number_or_letter_are_a_group() -> None:
    names = ["#1 String", "#2 String", "text_a", "text_b", "answer1"]
    groups = numbered_groups([column(name, WORDS) for name in names])
    assert [[each.name for each in group] for group in groups] == [names[:2], names[2:4]]


def test_two_numbered_texts_are_a_pair_and_three_are_none() -> None:
    three = [column(f"body{number}", WORDS) for number in (1, 2, 3)]
    assert text_pair(three[:2], is_named=True) == three[:2]
    assert text_pair(three, is_named=True) is None
