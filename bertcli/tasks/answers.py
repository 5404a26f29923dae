"""Logits -> the best answers; these and the right ones -> exact match and F1, as in SQuAD's scorers."""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from bertcli.system.terminal import around, short
from bertcli.tasks.examples import Answer, QuestionExample
from bertcli.tasks.shown import LONGEST, Kind, Mark, Passage, Piece, Prediction, ShownAnswer, marked_pieces
from bertcli.tasks.supervised import most_context
from bertcli.tokenizer.pieces import needs_no_blank

Gold = Sequence[Sequence[str]]
"""The right answers of each question; empty if the question has no answer."""

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NAMES = ("exact_match", "f1")


NO_ANSWER = "no answer in the text"
_Place = tuple[int, int]


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


def best_thresholds(gold: Gold, answers: Sequence[str], differences: Sequence[float]) -> dict[str, float]:
    """The scores with the best threshold for "no answer" (SQuAD 2.0's scorer).

    Args:
        answers: the best answer to each question, which is not "no answer".
        differences: how much better "no answer" is than that; above the threshold it is the answer.

    Returns:
        `best_exact_match` and `best_f1` in percent, and the threshold of each. Two rules differ from the
        official search: all questions with the same difference are on the same side, and the threshold for no
        answers at all is below all differences. Each threshold therefore gives exactly its score when it is
        applied.
    """
    pairs = _per_question(gold, answers)
    order = sorted(range(len(gold)), key=differences.__getitem__)
    scores: dict[str, float] = {}
    for column, name in enumerate(_NAMES):
        total = best = float(sum(not right for right in gold))
        threshold = differences[order[0]] - 1.0
        for place, i in enumerate(order):
            total += pairs[i][column] if gold[i] else -1.0 * bool(answers[i])
            last = place + 1 == len(order) or differences[order[place + 1]] > differences[i]
            if last and total > best:
                best, threshold = total, differences[i]
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
    totals = map(sum, zip(*pairs, strict=True))
    return {name: 100.0 * total / len(pairs) for name, total in zip(_NAMES, totals, strict=True)}


MAX_TOKENS = 30
"""Most tokens of an answer; this and `NUM_BEST` are as in the original code."""
NUM_BEST = 20


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens `first` to `last` (inclusive) of the text; `score` is the sum of a start and an end logit."""

    first: int
    last: int
    score: float


def best_spans(windows: Sequence[range], logits: Sequence[Tensor]) -> list[Span]:
    """The best `NUM_BEST` spans of at most `MAX_TOKENS` tokens, the best first; none in an empty text.

    `logits` holds [tokens of the window, 2] for each of `windows` (`supervised.cut_windows`). A span counts
    in the window where its first token has most context. All these spans are compared, not only those between
    the likeliest starts and ends.
    """
    if not windows[-1]:
        return []
    owner_T = torch.from_numpy(most_context(windows))
    spans: list[Span] = []
    for number, (window, logits_T2) in enumerate(zip(windows, logits, strict=True)):
        start_T, end_T = logits_T2.unbind(dim=-1)
        elsewhere_T = owner_T[window.start : window.stop] != number
        start_T = start_T.masked_fill(elsewhere_T, -torch.inf)
        end_TL = F.pad(end_T, (0, MAX_TOKENS - 1), value=-torch.inf).unfold(0, MAX_TOKENS, 1)
        score_TL = start_T[:, None] + end_TL
        best = score_TL.flatten().topk(min(NUM_BEST, score_TL.numel()))
        for place, score in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            if score > -torch.inf:
                first, more = divmod(place, MAX_TOKENS)
                spans.append(Span(window.start + first, window.start + first + more, score))
    return sorted(spans, key=lambda span: -span.score)[:NUM_BEST]


NOWHERE = (0, 0)
"""Start and end if a window holds no answer: the row's first token."""


@dataclass(frozen=True, slots=True)
class ContextWindow:
    """The part of a context in a row.

    Attributes:
        window: the tokens of the part, as a range of the context's tokens.
        first: the position in the row of the first of these tokens.
        spans: int32 [tokens of the context, 2]; start and end of each token in characters.
    """

    window: range
    first: int
    spans: NDArray[np.int32]


def target_of(passage: ContextWindow, answers: Sequence[Answer]) -> tuple[int, int]:
    """The positions of the answer's first and last token; `NOWHERE` if not all of it is in the row."""
    if not answers:
        return NOWHERE
    start, end = answers[0].start, answers[0].start + len(answers[0].text)
    first = int(np.searchsorted(passage.spans[:, 1], start, side="right"))
    last = int(np.searchsorted(passage.spans[:, 0], end)) - 1
    if first > last or first not in passage.window or last not in passage.window:
        return NOWHERE
    shift = passage.first - passage.window.start
    return first + shift, last + shift


def place_of(span: Span, passages: Sequence[ContextWindow]) -> tuple[int, int, int]:
    """The number of the window with most context for a span, and the span's first and last position there."""
    number = int(most_context([passage.window for passage in passages])[span.first])
    shift = passages[number].first - passages[number].window.start
    return number, span.first + shift, span.last + shift


def characters_of(context: str, spans: NDArray[np.int32], first: int, last: int) -> tuple[int, int]:
    """Start and end, in characters, of tokens `first` to `last`, with accents after them that are in no
    token.

    White space at both ends is left out; a token of white space alone has an empty span.
    """
    start, end = int(spans[first, 0]), int(spans[last, 1])
    limit = int(spans[last + 1, 0]) if last + 1 < len(spans) else len(context)
    while end < limit and unicodedata.category(context[end]) == "Mn":
        end += 1
    inside = context[start:end]
    start += len(inside) - len(inside.lstrip())
    return start, start + len(inside.strip())


@dataclass(frozen=True)
class Answered(Prediction):
    """An answer at characters `start` to `end` (exclusive) of the context; "" and None for no answer.

    Attributes:
        score: its probability among the best answers (and "no answer", if that is allowed).
        best: the best answer, also if "no answer" was predicted; "" in a context without tokens.
        null_difference: the logits of "no answer" minus those of `best`.
    """

    answer: str
    start: int | None
    end: int | None
    score: float
    best: str
    null_difference: float

    @property
    def uncertainty(self) -> float:
        """1 minus the probability."""
        return 1.0 - self.score

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {"answer": self.answer, "start": self.start, "end": self.end, "score": self.score}

    def readable(self, example: QuestionExample) -> str:
        """The answer and its probability, without the texts."""
        return f"{self.score:7.2%}  {self.answer or NO_ANSWER}"

    def display(self, example: QuestionExample) -> ShownAnswer:
        """The answer, also marked in the context."""
        context, answer = example.texts[1], self.answer or NO_ANSWER
        marks: list[Mark] = (
            [] if self.start is None or self.end is None else [(self.start, self.end, "both", "")]
        )
        passage = Passage("", marked_pieces(context, (0, len(context)), marks))
        return ShownAnswer(answer, [(answer, self.score)], [passage])


def answer_passages(example: QuestionExample, answer: Answered) -> list[Passage]:
    """The question, and the context around the answer; the given and the right answer are marked in it."""
    right = next(((each.start, each.start + len(each.text)) for each in example.answers or ()), None)
    given = None if answer.start is None or answer.end is None else (answer.start, answer.end)
    marks = _of_answers(right, given)
    question, context = example.texts
    windows = [around(context, *(given or right or (0, 0)), most=LONGEST)]
    if right is not None and not (windows[0][0] <= right[0] and right[1] <= windows[0][1]):
        windows.append(around(context, *right, most=LONGEST // 2))
    return [
        Passage("question", [Piece(short(question, LONGEST // 2))]),
        *(Passage("context", marked_pieces(context, window, marks)) for window in windows),
    ]


def _of_answers(right: _Place | None, given: _Place | None) -> list[Mark]:
    """The marks of two spans, which may overlap; the common part has the kind `both`."""
    spans: dict[Kind, _Place | None] = {"right": right, "given": given}
    edges = sorted({edge for span in spans.values() if span for edge in span})
    marks: list[Mark] = []
    for start, end in pairwise(edges):
        kinds: list[Kind] = [kind for kind, span in spans.items() if span and span[0] <= start < span[1]]
        marks.append((start, end, "both" if len(kinds) == 2 else kinds[0] if kinds else "", ""))
    return marks
