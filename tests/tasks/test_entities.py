"""Entities by conlleval's rules: against its state machine, written anew here, and by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertcli.tasks.entities import Chunk, chunks, entity_scores

tags = st.sampled_from(["O", "B-x", "I-x", "B-y", "I-y", "B", "I"])
sentences = st.lists(st.lists(st.tuples(tags, tags), max_size=12), max_size=5)


def ends(before: str, before_type: str, now: str, now_type: str) -> bool:
    """Whether conlleval lets a chunk end between two words."""
    if (before, now) in {("B", "B"), ("B", "O"), ("I", "B"), ("I", "O")}:
        return True
    return before != "O" and before_type != now_type


def starts(before: str, before_type: str, now: str, now_type: str) -> bool:
    """Whether conlleval lets a chunk start at the second of two words."""
    if (before, now) in {("B", "B"), ("I", "B"), ("O", "B"), ("O", "I")}:
        return True
    return now != "O" and before_type != now_type


def conlleval(pairs: list[list[tuple[str, str]]]) -> tuple[int, int, int]:
    """Chunks right, predicted and true: one pass over both columns at once, as the script does it."""
    right = found = wanted = 0
    in_right = False
    last = [("O", ""), ("O", "")]
    for truth, guess in [pair for sentence in pairs for pair in [*sentence, ("O", "O")]]:
        now = [(tag.partition("-")[0], tag.partition("-")[2]) for tag in (truth, guess)]
        true_end, guess_end = (ends(*last[i], *now[i]) for i in (0, 1))
        true_start, guess_start = (starts(*last[i], *now[i]) for i in (0, 1))
        if in_right:
            if true_end and guess_end and last[0][1] == last[1][1]:
                in_right, right = False, right + 1
            elif true_end != guess_end or now[0][1] != now[1][1]:
                in_right = False
        if true_start and guess_start and now[0][1] == now[1][1]:
            in_right = True
        wanted += true_start
        found += guess_start
        last = now
    return right, found, wanted


@settings(max_examples=300)
@given(sentences)
def test_the_counts_are_conllevals(pairs: list[list[tuple[str, str]]]):
    right, found, wanted = conlleval(pairs)
    scores = entity_scores([[t for t, _ in s] for s in pairs], [[g for _, g in s] for s in pairs])
    assert scores["precision"] == pytest.approx(right / found if found else 0)
    assert scores["recall"] == pytest.approx(right / wanted if wanted else 0)
    assert scores["f1"] == pytest.approx(2 * right / (found + wanted) if found + wanted else 0)
    assert sum(row["count"] for row in scores["per_type"].values()) == wanted
    flat = [pair for sentence in pairs for pair in sentence]
    assert scores["accuracy"] == pytest.approx(sum(t == g for t, g in flat) / max(1, len(flat)))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("B-x I-x O", [("x", 0, 2)]),
        ("B-x B-x I-x", [("x", 0, 1), ("x", 1, 3)]),
        ("O I-x I-x", [("x", 1, 3)]),
        ("B-x I-y I-y", [("x", 0, 1), ("y", 1, 3)]),
        ("I-x B-x", [("x", 0, 1), ("x", 1, 2)]),
        ("B-geo-loc I-geo-loc", [("geo-loc", 0, 2)]),
        ("B I O I", [("", 0, 2), ("", 3, 4)]),
        ("NOUN I-x VERB", [("x", 1, 2)]),
        ("", []),
    ],
)
def test_chunks_by_hand(line: str, found: list[tuple[str, int, int]]):
    assert chunks(line.split()) == [Chunk(*each) for each in found]


def test_scores_by_hand():
    truth = [["B-x", "I-x", "O", "B-y"], ["B-x"]]
    predicted = [["B-x", "I-x", "O", "B-x"], ["B-x"]]
    assert entity_scores(truth, predicted) == {
        "precision": pytest.approx(2 / 3),
        "recall": pytest.approx(2 / 3),
        "f1": pytest.approx(2 / 3),
        "accuracy": pytest.approx(4 / 5),
        "per_type": {
            "x": {"precision": pytest.approx(2 / 3), "recall": 1.0, "f1": pytest.approx(4 / 5), "count": 2},
            "y": {"precision": 0.0, "recall": 0.0, "f1": 0.0, "count": 1},
        },
    }


def test_an_entity_ends_with_its_sentence():
    assert entity_scores([["B-x"], ["I-x"]], [["B-x"], ["I-x"]])["per_type"]["x"]["count"] == 2
