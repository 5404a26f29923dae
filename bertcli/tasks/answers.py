"""Answers and the right answers -> exact match and F1, by the rules of SQuAD's official scorers."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from bertcli.tokenizer.pieces import needs_no_blank

Gold = Sequence[Sequence[str]]
"""The right answers of each question; empty if the question has no answer."""

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def normalize_answer(answer: str) -> str:
    """The form for comparing answers: lower case, no ASCII punctuation, no articles, single spaces.

    Text in a script without blanks between words, such as Chinese or Thai, is compared as in the scorer of
    MLQA (Lewis et al. 2020): each character with its marks is a word, and no punctuation counts.
    """
    text = answer.lower().translate(_PUNCTUATION)
    if not text.isascii() and any(map(needs_no_blank, text)):
        text = "".join(_apart(text))
    return " ".join(_ARTICLES.sub(" ", text).split())


def _apart(text: str) -> Iterator[str]:
    """The characters without punctuation; one that needs no blank gets blanks around it and its marks."""
    inside = False
    for character in text:
        category = unicodedata.category(character)
        if category.startswith("P"):
            continue
        if not category.startswith("M"):
            before, inside = inside, needs_no_blank(character)
            yield " " * (before or inside)
        yield character


def is_exact(answer: str, gold: Sequence[str]) -> bool:
    """True if an answer ("": no answer) is one of the right answers."""
    return normalize_answer(answer) in {normalize_answer(right) for right in gold or [""]}


def answer_scores(gold: Gold, answers: Sequence[str]) -> dict[str, float]:
    """`exact_match` and `f1` in percent, as in the official scorers (Rajpurkar et al. 2016, 2018).

    `f1` is the best overlap of words with a right answer; `normalize_answer` says what a word is. The rules
    are those of SQuAD 2.0 if some question has no answer, else those of 1.1; they differ for answers of
    articles alone. "" means "no answer". The rules of 2.0 also give both scores for the questions with an
    answer and for those without.
    """
    pairs = _per_question(gold, answers)
    scores = _mean(pairs)
    if all(gold):
        return scores
    for name, answerable in (("has_answer", True), ("no_answer", False)):
        group = [pair for pair, right in zip(pairs, gold, strict=True) if bool(right) == answerable]
        scores |= {f"{name}_{key}": value for key, value in _mean(group).items()} if group else {}
    return scores


def best_thresholds(
    gold: Gold, answers: Sequence[str], null_differences: Sequence[float]
) -> dict[str, float]:
    """The scores with the best threshold for "no answer" (SQuAD 2.0's scorer).

    Args:
        answers: the best answer to each question, which is not "no answer".
        null_differences: how much better "no answer" is than that; above the threshold it is the answer.

    Returns:
        `best_exact_match` and `best_f1` in percent, and the threshold of each. Two rules differ from the
        official search: all questions with the same difference are on the same side, and the threshold for no
        answers at all is below all differences. Each threshold therefore gives exactly its score when it is
        applied.
    """
    pairs = _per_question(gold, answers)
    order = sorted(range(len(gold)), key=null_differences.__getitem__)
    scores: dict[str, float] = {}
    for column, name in enumerate(("exact_match", "f1")):
        total = best = float(sum(not right for right in gold))
        threshold = null_differences[order[0]] - 1.0
        for place, i in enumerate(order):
            total += pairs[i][column] if gold[i] else -1.0 * bool(answers[i])
            last = place + 1 == len(order) or null_differences[order[place + 1]] > null_differences[i]
            if last and total > best:
                best, threshold = total, null_differences[i]
        scores |= {f"best_{name}": 100.0 * best / len(gold), f"best_{name}_threshold": threshold}
    return scores


def _per_question(gold: Gold, answers: Sequence[str]) -> list[tuple[float, float]]:
    """Exact match and F1 of each question, in 0..1."""
    second = not all(gold)
    return [_best_match(answer, right, second) for answer, right in zip(answers, gold, strict=True)]


def _best_match(answer: str, gold: Sequence[str], second: bool) -> tuple[float, float]:
    normal, rights = normalize_answer(answer), [normalize_answer(right) for right in gold]
    if second:  # SQuAD 2.0: a right answer of articles alone means "no answer"
        rights = [right for right in rights if right] or [""]
    overlap = max(_overlap(normal.split(), right.split(), empty=float(second)) for right in rights)
    return float(normal in rights), overlap


def _overlap(words: list[str], right: list[str], empty: float) -> float:
    """F1 of the words, with their multiplicity; `empty` if neither side has words."""
    if not words and not right:
        return empty
    common = (Counter(words) & Counter(right)).total()
    if common == 0:
        return 0.0
    precision, recall = common / len(words), common / len(right)
    return (2 * precision * recall) / (precision + recall)


def _mean(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    exact = sum(exact for exact, _ in pairs)
    overlap = sum(overlap for _, overlap in pairs)
    return {"exact_match": 100.0 * exact / len(pairs), "f1": 100.0 * overlap / len(pairs)}
