"""Answers by SQuAD's rules: numbers that the official scorers gave for the same answers, and the edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.tasks.answers import (
    answer_scores,
    best_thresholds,
    characters_of,
    is_exact,
    normalize_answer,
)


@pytest.mark.parametrize(
    ("answer", "normal"),
    [
        ("The  Cat,\tan owl & a dog.", "cat owl dog"),
        ("thean", "thean"),
        ("a-an", "aan"),
        ("«Ça» – 1½", "«ça» – 1½"),  # only ASCII punctuation goes
        ("İ", "i̇"),
        ("A", ""),
        ("", ""),
        ("《紅樓夢》,第 80回", "紅 樓 夢 第 80 回"),
        ("กรุงเทพฯ ที่นี่", "ก รุ ง เ ท พ ฯ ที่ นี่"),
        ("ソニー (Sony)", "ソ ニ ー sony"),
        ("서울 특별시", "서울 특별시"),
    ],
)
def test_what_answers_are_compared_by(answer: str, normal: str):
    assert normalize_answer(answer) == normal


ANSWERED = [
    # answer, those that count as right
    ("Denver Broncos", ["Denver Broncos", "the Broncos"]),
    ("the denver broncos!", ["Denver Broncos"]),
    ("Broncos of Denver", ["Denver Broncos", "The Broncos"]),
    ("new new york", ["New York", "york new"]),
    ("", ["1854"]),
    ("Café Müller", ["café Muller", "Cafe Müller"]),
    ("the", ["a"]),
    ("日本 tokyo", ["日本 x", "Tokyo"]),
    ("nothing of that", ["something else"]),
]
UNANSWERED = [("", []), ("a guess", []), ("An", [])]
BOTH = ANSWERED + UNANSWERED
DIFFERENCES = [-1.0, 0.75, -0.5, 1.25, 0.0, 1.75, 0.5, -0.75, 1.0, -0.25, 1.5, 0.25]


def columns(pairs: list[tuple[str, list[str]]]) -> tuple[list[list[str]], list[str]]:
    return [gold for _, gold in pairs], [answer for answer, _ in pairs]


def test_scores_are_those_of_the_official_scorer_of_1_1():
    assert answer_scores(*columns(ANSWERED)) == pytest.approx(
        {"exact_match": 33.333333333333336, "f1": 52.96296296296296}, rel=1e-14
    )


def test_scores_are_those_of_the_official_scorer_of_2_0():
    assert answer_scores(*columns(BOTH)) == pytest.approx(
        {
            "exact_match": 41.666666666666664,
            "f1": 64.72222222222221,
            "has_answer_exact_match": 33.333333333333336,
            "has_answer_f1": 64.07407407407408,
            "no_answer_exact_match": 66.66666666666667,
            "no_answer_f1": 66.66666666666667,
        },
        rel=1e-14,
    )
    assert best_thresholds(*columns(BOTH), DIFFERENCES) == pytest.approx(
        {
            "best_exact_match": 41.666666666666664,
            "best_exact_match_threshold": 0.75,
            "best_f1": 60.55555555555555,
            "best_f1_threshold": 1.25,
        },
        rel=1e-14,
    )


def test_in_scripts_without_blanks_the_words_are_characters():
    """A scorer that splits at blanks gives 0 for each of these answers."""
    near = [("在北京市", ["北京市"]), ("北京 市", ["北京市"]), ("「北京市」。", ["北京市"])]
    near += [("กรุงเทพ", ["กรุงเทพฯ"])]
    found = [answer_scores([gold], [answer]) for answer, gold in near]
    assert [scores["exact_match"] for scores in found] == [0, 100, 100, 0]
    assert [round(scores["f1"], 2) for scores in found] == [85.71, 100, 100, 92.31]


def test_without_any_answer_there_is_one_group():
    assert answer_scores([[], []], ["", "x"]) == {
        "exact_match": 50,
        "f1": 50,
        "no_answer_exact_match": 50,
        "no_answer_f1": 50,
    }


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "cat", "cat dog"]),
            st.sampled_from([[], ["cat"], ["dog", "cat dog"]]),
            st.integers(-2, 2).map(float),  # so few that many are equal
        ),
        min_size=1,
        max_size=8,
    )
)
def test_a_best_threshold_gives_its_score_and_no_other_gives_a_better_one(
    questions: list[tuple[str, list[str], float]],
):
    answers, gold, differences = (list(column) for column in zip(*questions, strict=True))
    gold[0] = []  # the rules of SQuAD 2.0 throughout
    best = best_thresholds(gold, answers, differences)

    def applied(threshold: float) -> dict[str, float]:
        given = ["" if d > threshold else a for a, d in zip(answers, differences, strict=True)]
        return answer_scores(gold, given)

    for name in ("exact_match", "f1"):
        assert applied(best[f"best_{name}_threshold"])[name] == pytest.approx(best[f"best_{name}"])
        highest = max(applied(threshold)[name] for threshold in [-9.0, *differences])
        assert best[f"best_{name}"] == pytest.approx(highest)


def test_right_is_what_matches_exactly():
    assert is_exact("The cat!", ["dog", "cat"])
    assert not is_exact("cats", ["cat"])
    assert is_exact("", [])
    assert not is_exact("cat", [])


@pytest.mark.parametrize(
    ("context", "spans", "tokens", "text"),
    [
        ("cafe\u0301 au", [(0, 4), (6, 8)], (0, 0), "cafe\u0301"),
        ("cafe\u0301 au", [(0, 4), (6, 8)], (0, 1), "cafe\u0301 au"),
        ("cafe\u0301", [(0, 4)], (0, 0), "cafe\u0301"),
        ("cafe\u0301s", [(0, 4), (4, 6)], (0, 0), "cafe"),  # the accent is in the next token
        (" to be ", [(0, 3), (3, 7)], (0, 1), "to be"),
        ("a  b", [(0, 1), (1, 3), (3, 4)], (1, 1), ""),
    ],
)
def test_an_answer_has_the_accents_after_it_and_no_white_space_around_it(
    context: str, spans: list[tuple[int, int]], tokens: tuple[int, int], text: str
):
    start, end = characters_of(context, np.array(spans, dtype=np.int32), *tokens)
    assert context[start:end] == text
