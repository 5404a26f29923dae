"""Questions and contexts: windows and targets, and answers that are the context's own text."""

from __future__ import annotations

import math
import unicodedata

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from torch import Tensor

from bertcli.config.task import TaskSettings
from bertcli.tasks.answers import MAX_TOKENS, NOWHERE
from bertcli.tasks.examples import Answer, QuestionExample
from bertcli.tasks.question_answering import QuestionAnswering
from bertcli.tasks.supervised import Item
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.folders.folders import tiny_tokenizer
from tests.tasks.contract import (
    assert_neighbors_change_nothing,
    assert_splits_change_nothing,
    batch,
    task_model,
)
from tests.tokenizer.tokenizers_of import make_tokenizer_folder

TOKENIZER = tiny_tokenizer()
LONG = "the cat sat on a mat , and it ran in the dark night ."


def made_task(
    max_length: int = 16, doc_stride: int = 4, null_threshold: float | None = None
) -> QuestionAnswering:
    settings = TaskSettings(
        type="question-answering", max_length=max_length, doc_stride=doc_stride, null_threshold=null_threshold
    )
    return QuestionAnswering(settings)


def asked(context: str, *answers: str, question: str = "was it") -> QuestionExample:
    """A question whose answers stand where they are first found in the context."""
    found = tuple(Answer(answer, context.index(answer)) for answer in answers)
    return QuestionExample("made.json, question q", {}, (question, context), "q", found)


def pointing(items: list[Item], height: float = 9.0) -> list[Tensor]:
    """Logits of a model that has learned its targets."""
    logits = [torch.zeros(item.length, 2) for item in items]
    for item, logits_T2 in zip(items, logits, strict=True):
        logits_T2[item.target[0], 0] = logits_T2[item.target[1], 1] = height
    return logits


def test_a_row_holds_the_question_and_a_window():
    (item,) = made_task().encode([asked("The cats sat.", "cats")], TOKENIZER)
    (row,) = item.rows
    pieces = [TOKENIZER.token(token) for token in row.ids]
    assert pieces == ["[CLS]", "was", "it", "[SEP]", "the", "cat", "##s", "sat", ".", "[SEP]"]
    assert row.second_starts == item.layout.first == 4
    assert (item.target, item.example, item.dropped) == ((5, 6), 0, 0)


def test_a_long_context_is_cut_into_windows_that_overlap():
    items = made_task().encode([asked(LONG, "a mat")], TOKENIZER)
    assert [item.layout.window for item in items] == [range(0, 11), range(7, 15)]
    assert [item.target for item in items] == [(8, 9), NOWHERE]
    across = asked(LONG, "it ran in the")
    assert [item.target for item in made_task().encode([across], TOKENIZER)] == [NOWHERE, (5, 8)]


@pytest.mark.parametrize("answers", [(), ("cat",)])
def test_where_there_is_no_answer_the_target_is_cls(answers: tuple[str, ...]):
    (item,) = made_task().encode([asked("the cat sat", *answers)], TOKENIZER)
    assert item.target == ((5, 5) if answers else NOWHERE)
    unlabeled = QuestionExample("here", {}, ("was it", "the cat sat"), "q", None)
    assert made_task().encode([unlabeled], TOKENIZER)[0].target is None


def test_a_long_question_is_cut():
    (item,) = made_task().encode([asked("the cat", question="was it " * 9)], TOKENIZER)
    assert (item.layout.first, item.dropped) == (2 + 6, 12)
    (item,) = made_task(max_length=400).encode([asked("the cat", question="was it " * 40)], TOKENIZER)
    assert (item.layout.first, item.dropped) == (2 + 64, 16)


words = st.lists(
    st.sampled_from(
        ["the", "cats", "Dog,", "[SEP]", "xyz", "don't", "\x07", "e\u0301", "É", "🎉", "日本", "sat."]
    ),
    min_size=1,
    max_size=60,
)
blanks = st.sampled_from([" ", "  ", "\n", "\u00a0", "\t "])


@given(words, blanks, st.data())
def test_a_model_that_points_at_the_answer_gives_exactly_its_text(
    words: list[str], blank: str, data: st.DataObject
):
    context = blank.join(words)
    first = data.draw(st.integers(0, len(words) - 1))
    chosen = words[first : first + data.draw(st.integers(1, 3))]
    assume(TOKENIZER.encode(chosen[0]) and TOKENIZER.encode(chosen[-1]))
    assume(len(TOKENIZER.encode(" ".join(chosen))) <= 8)  # half of what windows share
    start = len(blank.join([*words[:first], ""]))
    gold = Answer(blank.join(chosen), start)
    example = QuestionExample("here", {}, ("was it", context), "q", (gold,))
    task = made_task(max_length=40, doc_stride=16)
    items = task.encode([example], TOKENIZER)
    prediction = task.predict(example, items, pointing(items))
    assert (prediction.answer, prediction.start) == (gold.text, gold.start)
    assert prediction.end == gold.start + len(gold.text)
    assert task.is_right(example, prediction)
    assert 0.5 < prediction.score <= 1


def test_an_accent_of_its_own_stays_with_the_answer():
    example = asked("the cafe\u0301 e\u0301", "cafe\u0301")
    items = made_task().encode([example], TOKENIZER)
    assert made_task().predict(example, items, pointing(items)).answer == "cafe\u0301"


def test_no_answer_is_given_above_the_threshold_alone():
    example = asked("the cat sat", "cat")
    (item,) = made_task().encode([example], TOKENIZER)
    logits_T2 = torch.full((item.length, 2), -torch.inf)
    logits_T2[5, 0], logits_T2[5, 1] = 1.0, 2.0  # cat
    logits_T2[0] = torch.tensor([2.0, 2.5])  # [CLS], better by 1.5
    yes = {"answer": "cat", "start": 4, "end": 7}
    no = {"answer": "", "start": None, "end": None}
    share = 1 / (1 + math.exp(1.5))
    for threshold, expected, score in [(None, yes, 1.0), (2.0, yes, share), (1.0, no, 1 - share)]:
        prediction = made_task(null_threshold=threshold).predict(example, [item], [logits_T2])
        assert prediction.as_json() == expected | {"score": pytest.approx(score)}
        assert (prediction.best, prediction.null_difference) == ("cat", 1.5)


def test_answers_settle_by_the_threshold_that_all_of_them_gave():
    example = asked("the cat sat", "cat")
    (item,) = made_task().encode([example], TOKENIZER)
    logits_T2 = torch.full((item.length, 2), -torch.inf)
    logits_T2[5] = torch.tensor([1.0, 2.0])  # cat
    logits_T2[0] = torch.tensor([2.0, 2.5])  # [CLS], better by 1.5
    task = made_task()
    prediction = task.predict(example, [item], [logits_T2])
    assert task.settled([prediction], task.settings) == [prediction]
    for limit, answer in ((2.0, "cat"), (1.0, "")):
        (settled,) = task.settled([prediction], made_task(null_threshold=limit).settings)
        assert (settled.answer, settled.best) == (answer, "cat")
    assert settled.as_json()["score"] == pytest.approx(1 / (1 + math.exp(-1.5)))


def test_no_answer_is_as_good_as_in_the_window_where_it_is_worst():
    example = asked(LONG, "a mat")
    items = made_task().encode([example], TOKENIZER)
    prediction = made_task(null_threshold=0.0).predict(example, items, pointing(items))
    assert (prediction.answer, prediction.null_difference) == ("a mat", -18.0)


@pytest.mark.parametrize("context", ["", " \x07 "])
def test_a_context_without_tokens_has_no_answer(context: str):
    task, example = made_task(), asked(context)
    (item,) = task.encode([example], TOKENIZER)
    assert [TOKENIZER.token(token) for token in item.rows[0].ids] == ["[CLS]", "was", "it", "[SEP]", "[SEP]"]
    prediction = task.predict(example, [item], [torch.zeros(5, 2)])
    assert prediction.as_json() == {"answer": "", "start": None, "end": None, "score": 1.0}


def test_scores_are_in_percent_and_thresholds_come_where_there_are_no_answers():
    task = made_task()
    answered, unanswered = asked("the cat sat", "cat"), asked("the dog ran")
    right, guess = (
        task.predict(e, i := task.encode([e], TOKENIZER), pointing(i)) for e in (answered, unanswered)
    )
    assert task.score([answered], [right]) == {"exact_match": 100.0, "f1": 100.0}
    scores = task.score([answered, unanswered], [right, guess])
    assert scores[task.metric] == 50.0
    assert scores["best_f1"] == 100.0
    assert right.null_difference <= scores["best_f1_threshold"] < guess.null_difference
    assert not task.is_right(unanswered, guess)


CONTEXTS = [
    asked("the cat sat", "cat"),
    asked("a dog ran on the mat and it was dark , dark night in the house of the cat", "dark night"),
    asked("it", question="was the dog dark"),
]


def test_neighbors_and_splits_change_nothing():
    task, model = made_task(), task_model("spans")
    items = task.encode(CONTEXTS, TOKENIZER)
    assert_neighbors_change_nothing(task, model, items)
    assert_splits_change_nothing(task, model, items)
    assert task.count(batch(items)) == len(items)


def test_a_threshold_is_for_questions():
    with pytest.raises(ValidationError, match="null_threshold: 1\\.0 is for type: question-answering"):
        TaskSettings(type="token-classification", null_threshold=1.0)


KINDS = ("bert", "roberta", "modernbert", "albert", "xlm-roberta", "deberta-v2")
SPOKEN = [*"ab .,é½ﬁ日🎉\t\u00a0\u0301م", "the ", "  ", "🇫🇷", "👨‍👩‍👧", "e\u0301"]


@pytest.fixture(scope="module")
def tokenizers_of_kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    folder = tmp_path_factory.mktemp("kinds")
    return {kind: Tokenizer.load(make_tokenizer_folder(kind, folder / kind)) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40)
@given(st.lists(st.sampled_from(SPOKEN), min_size=1, max_size=20).map("".join), st.data())
def test_every_answer_is_found_again(
    tokenizers_of_kinds: dict[str, Tokenizer], kind: str, context: str, data: st.DataObject
):
    """Its characters, or more of them where a piece holds more; less at its end where no piece has them."""
    start = data.draw(st.integers(0, len(context) - 1))
    end = data.draw(st.integers(start + 1, len(context)))
    answer = context[start:end]
    assume(answer.strip() == answer and unicodedata.category(answer[0]) not in ("Mn", "Cf"))
    example = QuestionExample("here", {}, ("a", context), "q", (Answer(answer, start),))
    task = made_task(max_length=128)
    (item,) = task.encode([example], tokenizers_of_kinds[kind])
    assert item.target != NOWHERE
    assume(item.target[1] - item.target[0] < MAX_TOKENS)
    found = task.predict(example, [item], pointing([item]))
    assert found.start is not None
    assert found.end is not None
    assert found.start <= start
    spans = item.layout.spans
    marks = ("Mn", "Cf") if kind in ("bert", "albert", "xlm-roberta") else ("Mn",)
    rest = context[found.end : end]
    assert all(unicodedata.category(character) in marks or character.isspace() for character in rest)
    assert found.start in spans[:, 0]
    assert (np.diff(spans, axis=0) >= 0).all()
    overlapping = (spans[:, 0] < end) & (spans[:, 1] > start)
    assert found.start == spans[overlapping, 0].min()
    assert found.end >= spans[overlapping, 1].max()
