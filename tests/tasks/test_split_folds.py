"""Folds and groups: each row is judged once, and no text or group is on two sides."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertcli.system.errors import UserError
from bertcli.tasks.examples import QuestionExample, TextExample
from bertcli.tasks.split import groups_of, split_dev, split_folds
from tests.tasks.reading import rows

CLASSES = st.sampled_from("xyz")


@given(st.lists(st.tuples(st.integers(0, 60), CLASSES), min_size=5, max_size=80), st.integers(2, 5))
def test_folds_have_the_same_number_of_each_label_within_one_row(given: list, folds: int):
    examples = rows(*((f"text {number}", label) for number, label in given))
    found = split_folds(examples, folds, seed=0)
    for label in {None, *(each.answer for each in examples)}:
        counts = Counter(
            fold for fold, each in zip(found, examples, strict=True) if label in (None, each.answer)
        )
        assert max(counts.values()) - min(counts[fold] for fold in range(1, folds + 1)) <= 1


def test_copies_of_a_text_are_in_one_fold_if_they_fit() -> None:
    given = [(f"text {i // 4}", "ham") for i in range(40)] + [(f"text {i}", "spam") for i in range(20, 60)]
    found = split_folds(rows(*given), 5, seed=3)
    folds: dict[str, set[int]] = {}
    for (text, _), fold in zip(given, found, strict=True):
        folds.setdefault(text, set()).add(fold)
    assert all(len(each) == 1 for each in folds.values())
    too_many = split_folds(rows(*[("same", "ham")] * 20, *((f"{i}", "ham") for i in range(5))), 5, seed=3)
    assert set(Counter(too_many).values()) == {5}


@given(st.permutations(range(30)))
@settings(max_examples=20)
def test_folds_depend_on_seed_and_content_alone(order: list[int]) -> None:
    examples = [
        TextExample(f"{i}", {"who": i % 9}, (f"text {i}",), "spam" if i % 7 == 0 else "ham")
        for i in range(30)
    ]
    for group in (None, "who"):
        found = split_folds(examples, 4, 1, group)
        again = split_folds([examples[i] for i in order], 4, 1, group)
        assert [found[i] for i in order] == again
        assert split_folds(examples, 4, 2, group) != found


grouped = st.lists(st.tuples(st.integers(0, 12), st.sampled_from("xxyz")), min_size=30, max_size=80)


def of_groups(given: list[tuple[int, str]]) -> list[TextExample]:
    return [
        TextExample(f"{i}", {"text": f"{i}", "who": who}, (f"{i}",), label)
        for i, (who, label) in enumerate(given)
    ]


@given(grouped, st.integers(2, 5), st.floats(0.1, 0.6))
@settings(max_examples=25, deadline=None)
def test_no_group_is_on_two_sides(given: list, folds: int, fraction: float) -> None:
    examples = of_groups(given)
    groups = {who for who, _ in given}
    if len(groups) >= folds:
        found = split_folds(examples, folds, 0, "who")
        assert set(found) == set(range(1, folds + 1))
        pairs = {(each.columns["who"], fold) for each, fold in zip(examples, found, strict=True)}
        assert len(pairs) == len(groups)
    try:
        train, dev = split_dev(examples, fraction, 0, "who")
    except UserError:
        return
    assert not {each.columns["who"] for each in train} & {each.columns["who"] for each in dev}
    assert len(train) + len(dev) == len(examples)
    assert {each.answer for each in dev} <= {each.answer for each in train}


def deviation(sides: list[int], labels: list[str]) -> float:
    """The mean over labels of the standard deviation of their shares, as StratifiedGroupKFold takes it."""
    shares = []
    for label in sorted(set(labels)):
        own = Counter(side for side, each in zip(sides, labels, strict=True) if each == label)
        shares.append(np.std([own[side] / own.total() for side in sorted(set(sides))]))
    return float(np.mean(shares))


@pytest.mark.parametrize("folds", [3, 5])
def test_groups_keep_the_shares_of_labels_as_well_as_scikit_learn_does(folds: int) -> None:
    """On each of several tables, but for the luck of one placing, and better in the mean."""
    from sklearn.model_selection import StratifiedGroupKFold

    ours, theirs = [], []
    for table in range(4):
        drawn = np.random.default_rng(table)
        sizes = drawn.geometric(0.2, size=40)
        given = [
            (group, drawn.choice(["x", "y", "z"], p=drawn.dirichlet([1, 1, 1])))
            for group, size in enumerate(sizes)
            for _ in range(size)
        ]
        labels, groups = [label for _, label in given], [group for group, _ in given]
        ours.append(deviation(split_folds(of_groups(given), folds, 0, "who"), labels))
        sides = np.zeros(len(given), int)
        for side, (_, rows_of_side) in enumerate(StratifiedGroupKFold(folds).split(labels, labels, groups)):
            sides[rows_of_side] = side
        theirs.append(deviation(sides.tolist(), labels))
    assert all(own <= other * 1.05 for own, other in zip(ours, theirs, strict=True))
    assert np.mean(ours) < np.mean(theirs)


def test_dev_has_its_share_of_each_label_of_groups() -> None:
    given = [(i // 5, "spam" if i % 10 < 2 else "ham") for i in range(500)]
    _, dev = split_dev(of_groups(given), 0.2, 0, "who")
    assert Counter(each.answer for each in dev) == {"ham": 80, "spam": 20}


def test_a_group_that_alone_has_a_label_stays_in_training() -> None:
    given = [(i // 5, "rare" if i == 12 else "often") for i in range(50)]
    for seed in range(8):
        train, dev = split_dev(of_groups(given), 0.5, seed, "who")
        assert "rare" in {each.answer for each in train}
        assert dev


def test_folds_of_questions_keep_each_context_together() -> None:
    examples = [
        QuestionExample(f"{i}", {}, (f"question {i}", f"context {i // 5}"), f"{i}", ()) for i in range(100)
    ]
    found = split_folds(examples, 4, seed=0)
    assert set(Counter(found).values()) == {25}
    assert len({(each.content, fold) for each, fold in zip(examples, found, strict=True)}) == 20


@pytest.mark.parametrize(
    ("row", "group", "message"),
    [
        ({"text": "a", "who": ""}, "who", r"7: task.group: the column 'who' is empty; write the group"),
        ({"text": "a", "who": None}, 1, r"7: task.group: the column 'who' is empty"),
        ({"text": "a"}, "whom", r"7: task.group: no column 'whom'; its columns: 'text'"),
        ({}, "who", r"no column 'who'; its columns: none, since the file is no table"),
        ({"text": "a"}, 3, r"no column 3; its columns: 'text'"),
    ],
)
def test_a_row_without_a_group_is_an_error(row: dict, group: str | int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        split_folds([TextExample("line 7", row, ("a",), "x")] * 9, 2, 0, group)


def test_a_group_by_number_is_the_same_column_whatever_the_order_of_a_rows_keys() -> None:
    rows_of_json = [{"text": str(n), "who": "ab"[n % 2]} for n in range(8)]
    turned = [dict(reversed(row.items())) if n > 3 else row for n, row in enumerate(rows_of_json)]
    examples = [TextExample(f"line {n}", row, (str(n),), "x") for n, row in enumerate(turned)]
    assert groups_of(examples, 1) == [("a",), ("b",)] * 4
    assert groups_of([], 1) == []


def test_too_few_rows_or_groups_for_the_folds() -> None:
    with pytest.raises(UserError, match="folds: 5 folds need 5 different texts or more, and 3 rows have 3"):
        split_folds(rows(("a", "x"), ("b", "x"), ("c", "y")), 5, 0)
    with pytest.raises(UserError, match=r"need 3 groups \(task.group\) or more, and 8 rows have 2: lower"):
        split_folds(of_groups([(i % 2, "x") for i in range(8)]), 3, 0, "who")
    with pytest.raises(UserError, match=r"0.2 of 8 rows, in 1 groups \(task.group\), leaves none"):
        split_dev(of_groups([(1, "x")] * 8), 0.2, 0, "who")
