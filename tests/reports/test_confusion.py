"""The confusion matrix of two labels, of a dozen and of 150."""

from __future__ import annotations

from collections import Counter

from bertcli.reports.finetuning import MOST_LABELS, OTHERS, confusion


def test_two_labels_keep_their_order() -> None:
    found = confusion(["ham", "ham", "spam"], ["ham", "spam", "spam"], ["spam", "ham"])
    assert found.labels == ["spam", "ham"]
    assert [[cell.count for cell in cells] for _, _, cells in found.rows] == [[1, 0], [1, 1]]
    assert [[cell.right for cell in cells] for _, _, cells in found.rows] == [[True, False], [False, True]]
    assert found.worst == [("ham", "spam", 1)]


def test_of_many_labels_the_most_confused_come_first_and_no_row_is_lost() -> None:
    labels = [f"label {number}" for number in range(150)]
    right = labels * 4
    given = [
        *labels,
        *labels,
        *labels,
        *(labels[7] if i in (3, 9) else each for i, each in enumerate(labels)),
    ]
    found = confusion(right, given, labels)
    assert len(found.labels) == MOST_LABELS
    assert found.labels[0] == "label 7"
    assert set(found.labels[1:3]) == {"label 3", "label 9"}
    assert found.labels[-1] == OTHERS
    assert sum(cell.count for _, _, cells in found.rows for cell in cells) == 600
    assert Counter(found.worst) == Counter([("label 3", "label 7", 1), ("label 9", "label 7", 1)])
    assert found.num_labels == 150


def test_a_shade_is_there_wherever_a_number_is() -> None:
    found = confusion(["a"] * 1000, ["b"] + ["a"] * 999, ["a", "b"])
    cells = {cell.count: cell.level for _, _, cells in found.rows for cell in cells}
    assert cells == {999: 9, 1: 1, 0: 0}


def test_long_labels_are_cut() -> None:
    assert len(confusion(["a" * 500], ["a" * 500], ["a" * 500, "b"]).labels[0]) == 40
