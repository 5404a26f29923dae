"""Words as people write them, whatever the tokenizer; every token of a text is in one of them."""

from __future__ import annotations

import pytest

from bertcli.tasks.examples import ChoiceExample, Example, QuestionExample, TextExample
from bertcli.tasks.row_words import ReadRow, read_texts
from bertcli.tasks.supervised import build_task
from bertcli.tasks.words import running_text
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.folders.folders import SETTINGS, tiny_tokenizer
from tests.tokenizer.tokenizers_of import LINES, make_tokenizer_folder

KINDS = ("bert", "roberta", "albert", "deberta-v2")


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tokenizer]:
    folder = tmp_path_factory.mktemp("kinds")
    return {kind: Tokenizer.load(make_tokenizer_folder(kind, folder / kind)) for kind in KINDS}


def texts_of(read: ReadRow, segment: int = 0) -> list[str]:
    return [word.text for word in read.words if word.segment == segment]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The cats' names, didn't (she) say?", "The cats ' names , didn't ( she ) say ?".split()),  # noqa: SIM905
        (" two  blanks ", ["two", "blanks"]),
        ("السلام عليكم", ["السلام", "عليكم"]),
    ],
)
def test_words_are_those_of_the_text(kinds: dict[str, Tokenizer], kind: str, text: str, words: list[str]):
    assert texts_of(read_texts(kinds[kind], [text], 512)) == words


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("bert", ["日", "本", "語", "mixed"]),
        ("roberta", ["日", "本", "語", "mixed"]),
        ("albert", ["日本語", "mixed"]),
    ],
)
def test_without_blanks_each_piece_is_a_word(kinds: dict[str, Tokenizer], kind: str, words: list[str]):
    """Of several bytes, or of several characters that the vocabulary lacks."""
    assert texts_of(read_texts(kinds[kind], ["日本語 mixed"], 512)) == words


@pytest.mark.parametrize("kind", KINDS)
def test_each_token_of_a_text_is_in_one_word_and_special_ones_in_none(kinds: dict[str, Tokenizer], kind: str):
    tokenizer = kinds[kind]
    for texts in [[line] for line in LINES] + [[line, LINES[2]] for line in LINES]:
        for length in (512, 16):
            read = read_texts(tokenizer, texts, length)
            places = [place for word in read.words for place in word.tokens]
            special = tokenizer.frame.special_ids
            assert places == [place for place, id_ in enumerate(read.row.ids) if id_ not in special]
            whole = sum(map(len, tokenizer.encode_batch(texts)))
            assert len(places) + read.dropped == whole


def read(kind: str, example: Example, window: int = 0, row: int = 0, **changes: int) -> ReadRow:
    settings = SETTINGS[kind].model_copy(update=changes)
    tokenizer = tiny_tokenizer()
    task = build_task(settings, ("O", "B-LOC", "I-LOC"))
    found = task.read(example, task.encode([example], tokenizer)[window], row, tokenizer=tokenizer)
    for word in found.words:  # these texts are written as the vocabulary has them
        pieces = [tokenizer.token(found.row.ids[place]) for place in word.tokens]
        assert tokenizer.join(pieces) == word.text
    return found


def test_both_texts_of_a_pair_are_read_and_what_is_cut_is_counted():
    example = TextExample("here", {}, ("the cats sat on the mat .", "a dog"), label=None)
    assert texts_of(read("classification", example)) == example.texts[0].split()
    assert texts_of(read("classification", example), 1) == ["a", "dog"]
    cut = read("classification", example, max_length=9)
    assert (texts_of(cut), texts_of(cut, 1), cut.dropped) == (["the", "cats", "sat"], ["a", "dog"], 4)


def test_a_choice_is_read_with_its_text():
    choices = ("dog", "cats sat on")
    example = ChoiceExample("here", {}, ("it was", "the"), choices=choices, label=None)
    assert texts_of(read("choices", example, row=0), 1) == ["the", "dog"]
    assert texts_of(read("choices", example, row=1), 1) == ["the", "cats", "sat", "on"]
    assert texts_of(read("choices", example, row=1, max_length=8), 1) == ["cats", "sat"]


def test_a_window_of_a_context_has_its_own_words():
    context = " ".join(["the cats sat on the mat .", "a dog ran in the dark"] * 2)
    example = QuestionExample("here", {}, ("he sat", context), id="q", answers=None)
    for window in range(3):
        found = read("questions", example, window=window, max_length=16, doc_stride=4)
        assert found.dropped == 28 - (found.row.length - 5)
        assert texts_of(found) == ["he", "sat"]
        assert " ".join(texts_of(found, 1)) in context


@pytest.mark.parametrize("window", [0, 1, 2])
def test_a_window_of_tagged_words_has_all_its_words(window: int):
    example = running_text("here", {}, " ".join(["the cats sat on the mats", "a dog ran in darks"] * 3))
    found = read("tokens", example, window=window, max_length=16, doc_stride=6)
    assert len([place for word in found.words for place in word.tokens]) == found.row.length - 2
    assert found.dropped == 42 - (found.row.length - 2)
    assert " ".join(texts_of(found)) in example.texts[0]


def test_of_a_word_longer_than_a_window_the_beginning_is_read():
    example = running_text("here", {}, "the " + "c" + "s" * 40 + " sat")
    tokenizer = tiny_tokenizer()
    task = build_task(SETTINGS["tokens"].model_copy(update={"max_length": 16}), ("O",))
    rows = [task.read(example, item, 0, tokenizer=tokenizer) for item in task.encode([example], tokenizer)]
    assert {text for each in rows for text in texts_of(each)} == set(example.words)
