"""Words to tags: windows, first pieces, each word predicted once, and the entities."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bertcli.config.task import TaskSettings
from bertcli.system.errors import UserError
from bertcli.tasks.examples import TaggedExample
from bertcli.tasks.supervised import Item
from bertcli.tasks.token_classification import TokenClassification
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.folders.folders import tiny_tokenizer
from tests.tasks.contract import (
    assert_neighbors_change_nothing,
    assert_splits_change_nothing,
    batch,
    task_model,
)
from tests.tokenizer.tokenizers_of import make_tokenizer_folder

LABELS = ("O", "B-x", "I-x", "B-y", "I-y")
TOKENIZER = tiny_tokenizer()
CONTROL = "\x07"
"""A word without any piece."""
LONG = "." * 40
"""A word of 40 pieces, more than a window holds."""


def made_task(max_length: int = 16, doc_stride: int = 6) -> TokenClassification:
    settings = TaskSettings(type="token-classification", max_length=max_length, doc_stride=doc_stride)
    return TokenClassification(settings, LABELS)


def tagged(words: list[str], tags: list[str] | None = None) -> TaggedExample:
    text, spans = " ".join(words), []
    for word in words:
        start = spans[-1][1] + 1 if spans else 0
        spans.append((start, start + len(word)))
    labeled = None if tags is None else tuple(tags)
    return TaggedExample("made.conll, line 1", {}, (text,), tuple(words), tuple(spans), labeled)


def by_token(items: list[Item]) -> list[Tensor]:
    """Logits of a model that tags each token by its id alone, wherever it stands."""
    return [torch.eye(len(LABELS))[torch.tensor(item.rows[0].ids) % len(LABELS)] * 9 for item in items]


def tag_of(word: str) -> str:
    ids = TOKENIZER.encode(word)
    return LABELS[ids[0] % len(LABELS)] if ids else "O"


def test_words_are_read_at_their_first_piece():
    example = tagged(["The", "cats", "sat", "in", "[MASK]"], ["O", "B-x", "I-x", "O", "B-y"])
    (item,) = made_task().encode([example], TOKENIZER)
    pieces = [TOKENIZER.token(token) for token in item.rows[0].ids]
    assert pieces == ["[CLS]", "the", "cat", "##s", "sat", "in", "[", "mask", "]", "[SEP]"]
    assert item.layout.positions == [1, 2, 4, 5, 6]
    assert item.target == [0, 1, 2, 0, 3]
    assert (item.layout.words, item.example, item.dropped) == ([0, 1, 2, 3, 4], 0, 0)


def test_a_long_text_is_cut_between_words_and_each_word_counts_once():
    example = tagged(["cats"] * 12, ["O"] * 12)
    items = made_task().encode([example], TOKENIZER)  # 14 tokens a window, of which 6 shared
    assert [len(item.rows[0].ids) for item in items] == [16, 16, 10]
    assert [item.layout.words for item in items] == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9], [10, 11]]
    assert [len(item.target) for item in items] == [6, 4, 2]
    assert all(item.rows[0].ids[1] != TOKENIZER.encode("cats")[1] for item in items)


words = st.lists(
    st.sampled_from(["the", "cats", "Dog,", "sat", "[SEP]", "xyz", "don't", CONTROL, LONG]), max_size=40
)


@given(st.lists(words, min_size=1, max_size=3), st.integers(16, 40), st.integers(0, 30))
def test_every_word_is_judged_once_by_its_own_first_piece(
    texts: list[list[str]], max_length: int, doc_stride: int
):
    task = made_task(max_length, doc_stride)
    examples = [tagged(text, [tag_of(word) for word in text]) for text in texts]
    items = task.encode(examples, TOKENIZER)
    assert [item.example for item in items] == sorted(item.example for item in items)
    for number, example in enumerate(examples):
        mine = [item for item in items if item.example == number]
        judged = sorted(word for item in mine for word in item.layout.words)
        assert judged == [i for i, word in enumerate(example.words) if word != CONTROL]
        for item in mine:
            assert len(item.rows[0].ids) <= max_length
            assert [LABELS[number] for number in item.target] == [
                tag_of(example.words[word]) for word in item.layout.words
            ]
        prediction = task.predict(example, mine, by_token(mine))
        assert prediction.tags == example.tags
        assert task.is_right(example, prediction)
        for entity in prediction.entities:
            assert example.texts[0][entity.start : entity.end] == entity.text
            assert entity.score == pytest.approx(1.0, abs=0.01)


def test_entities_come_with_their_place_and_probability():
    example = tagged(["the", "dark", "house", "on", "fire"])
    task = made_task()
    items = task.encode([example], TOKENIZER)
    assert items[0].target is None
    logits_TC = torch.full((7, len(LABELS)), -torch.inf)
    logits_TC[:, 0] = 0.0
    logits_TC[2, [0, 4]] = torch.tensor([0.1, 0.9]).log()  # dark: I-y after O starts an entity
    logits_TC[3, [0, 4]] = torch.tensor([0.3, 0.7]).log()  # house: I-y goes on with it
    logits_TC[5, [0, 1]] = torch.tensor([0.4, 0.6]).log()  # fire: B-x
    prediction = task.predict(example, items, [logits_TC])
    assert prediction.as_json() == {
        "entities": [
            {"text": "dark house", "type": "y", "start": 4, "end": 14, "score": pytest.approx(0.8)},
            {"text": "fire", "type": "x", "start": 18, "end": 22, "score": pytest.approx(0.6)},
        ],
        "tags": ["O", "I-y", "I-y", "O", "B-x"],
    }


@pytest.mark.parametrize("words", [[], [CONTROL, CONTROL]])
def test_a_text_without_pieces_is_one_window_with_nothing_to_judge(words: list[str]):
    task = made_task()
    example = tagged(words, ["O"] * len(words))
    (item,) = task.encode([example], TOKENIZER)
    assert item.rows[0].ids == TOKENIZER.frame.row([]).ids
    assert float(task.term(torch.zeros(1, 2, len(LABELS)), batch([item])).loss) == 0.0
    assert task.count(batch([item])) == 1  # which a loss may be divided by
    assert task.predict(example, [item], by_token([item])).tags == example.tags


def test_what_is_cut_off_a_word_is_counted():
    items = made_task().encode([tagged(["the", LONG, "cat"])], TOKENIZER)
    assert sum(item.dropped for item in items) == 40 - 14


def test_an_unknown_tag_is_an_error():
    message = "made.conll, line 1: the tag 'B-z' of the word 'cat' is not one of the model's: O, B-x,"
    with pytest.raises(UserError, match=message):
        made_task().encode([tagged(["the", "cat"], ["O", "B-z"])], TOKENIZER)


def test_entities_are_scored():
    task = made_task()
    example = tagged(["the", "cat"], ["O", "B-x"])
    items = task.encode([example], TOKENIZER)
    wrong = task.predict(example, items, [torch.eye(4, len(LABELS))])
    assert not task.is_right(example, wrong)
    assert task.score([example], [wrong])[task.metric] == 0.0


LENGTHS = [["the", "cat"], ["a"], ["dogs", "ran"] * 12, ["it", CONTROL, "sat", "."], []]
EXAMPLES = [tagged(each, [LABELS[i % 5] for i in range(len(each))]) for each in LENGTHS]


def test_neighbors_and_splits_change_nothing():
    task, model = made_task(), task_model("tokens", len(LABELS))
    items = task.encode(EXAMPLES, TOKENIZER)
    assert_neighbors_change_nothing(task, model, items)
    assert_splits_change_nothing(task, model, [item for item in items if item.layout.words])


@pytest.mark.parametrize("kind", ["roberta", "deberta", "xlm-roberta"])
def test_words_are_those_of_a_text(tmp_path, kind: str):
    """Each word has the pieces that it has after a blank: the first word too."""
    tokenizer = Tokenizer.load(make_tokenizer_folder(kind, tmp_path))
    (item,) = made_task(max_length=32).encode([tagged(["the", "house", "sat"])], tokenizer)
    (row,) = item.rows
    assert row.ids == tokenizer.frame.row(tokenizer.encode(" the house sat")).ids
    assert [tokenizer.readable(row.ids[place])[0] for place in item.layout.positions] == ["▁"] * 3
