"""Spans of characters as tags of words, and back: exact where they can be, refused or fitted where not."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertcli.config.task import TaskSettings
from bertcli.tasks.examples import Example, MarkedText, Mention, TaggedExample
from bertcli.tasks.places import at_words, mentions_of, misfits
from bertcli.tasks.table import BadRow
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.word_places import placed_words
from tests.folders.folders import tiny_tokenizer
from tests.tasks.reading import words
from tests.tokenizer.tokenizers_of import make_tokenizer_folder

SCRIPTS = (
    "abZé ",
    "e\u0301o\u0308n ",
    "Привет ",
    "नमस्ते\u200dक ",
    "العربية ",
    "東京都タワー",
    "กินข้าว ",
    "👍🏽👨\u200d👩\u200d👧🎉❤️ ",
    "한국어 ",
    ".,;!?“”()-'/ \n\t",
)
KINDS = ("bert", "roberta", "xlm-roberta")
FITTING: dict[str, Any] = {"span_ends": "widen", "overlaps": "longest"}


@cache
def tokenizer(kind: str) -> Tokenizer:
    if kind == "bert":
        return tiny_tokenizer()
    return Tokenizer.load(make_tokenizer_folder(kind, Path(mkdtemp())))


def spans(**given: Any) -> TaskSettings:
    return words(format="spans", **given)


def marked(text: str, *mentions: tuple[int, int, str]) -> MarkedText:
    return MarkedText("a.jsonl, line 1", {"text": text}, (text,), tuple(Mention(*each) for each in mentions))


def placed(
    *rows: Example, given: TaskSettings | None = None, kind: str = "bert", **options: Any
) -> list[Any]:
    return list(at_words(rows, given or spans(), tokenizer(kind), **options))


TEXTS = st.lists(st.sampled_from(SCRIPTS).flatmap(lambda a: st.text(a, max_size=6)), max_size=6).map("".join)


@settings(max_examples=200)
@given(TEXTS, st.sampled_from(KINDS), st.data())
def test_spans_of_whole_words_come_back_to_the_character(text: str, kind: str, data: st.DataObject) -> None:
    (own,) = placed_words(tokenizer(kind), [text])
    mentions, at = [], 0
    while at < len(own) and data.draw(st.booleans()):
        first = data.draw(st.integers(at, len(own) - 1))
        last = data.draw(st.integers(first, min(first + 3, len(own) - 1)))
        mentions.append((own[first].start, own[last].end, data.draw(st.sampled_from("xy"))))
        at = last + 1
    (example,) = placed(marked(text, *mentions), kind=kind)
    assert mentions_of(example) == tuple(mentions)
    assert example.words == tuple(text[each.start : each.end] for each in own)


@settings(max_examples=200)
@given(TEXTS, st.sampled_from(KINDS), st.data())
def test_any_spans_are_widened_least_and_never_overlap(text: str, kind: str, data: st.DataObject) -> None:
    ends = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    mentions = [
        (min(pair), max(pair), "x") for pair in data.draw(st.lists(ends, max_size=4)) if pair[0] != pair[1]
    ]
    (found,) = placed(marked(text, *mentions), given=spans(**FITTING), kind=kind)
    (own,) = placed_words(tokenizer(kind), [text])
    if isinstance(found, BadRow):
        assert "holds no word that the model reads" in str(found)
        return
    for mention in mentions_of(found) or ():
        touched = [
            (min(w.start for w in hit), max(w.end for w in hit))
            for start, end, _ in mentions
            if (hit := [w for w in own if w.start < end and w.end > start])
        ]
        assert (mention.start, mention.end) in touched
    kept = mentions_of(found) or ()
    assert all(a.end <= b.start for a, b in pairwise(kept))
    assert bool(kept) == bool(mentions)


@given(TEXTS, st.sampled_from(KINDS))
def test_the_ids_of_the_words_are_those_of_the_text(text: str, kind: str) -> None:
    (own,) = placed_words(tokenizer(kind), [text])
    ids = [token for word in own for token in word.ids]
    assert ids == (tokenizer(kind).encode(text) if own else [])
    assert all(a.end <= b.start for a, b in pairwise(own))
    assert all(word.start < word.end for word in own)


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_words_end_beside_punctuation_and_never_inside_a_character(kind: str) -> None:
    text = "“U.S.” re\u0301sume\u0301 👍🏽! 東"
    (own,) = placed_words(tokenizer(kind), [text])
    assert {"U", ".", "S", "”", "!", "東"} <= {text[each.start : each.end] for each in own}
    inside = {text.index("\u0301"), text.rindex("\u0301"), text.index("🏽")}
    assert inside.isdisjoint({at for each in own for at in (each.start, each.end)})


INSIDE = marked("Mia in Oslo.", (0, 3, "PER"), (7, 10, "LOC"))
NESTED = marked("New York Times", (0, 14, "ORG"), (0, 8, "LOC"), (0, 14, "ORG"))


@pytest.mark.parametrize(
    ("row", "message", "line", "key", "found"),
    [
        (
            INSIDE,
            "a.jsonl, line 1: the span 7-10 'Osl' (LOC) begins or ends inside a word of 'Oslo'; "
            "set task.span_ends: widen to take whole words",
            "1 of 2 spans begin or end inside a word (task.span_ends: {}); first a.jsonl, line 1: 7-10",
            {"span_ends": "widen"},
            ((0, 3, "PER"), (7, 11, "LOC")),
        ),
        (
            NESTED,
            "a.jsonl, line 1: the span 0-8 'New York' (LOC) overlaps 0-14 'New York Times' (ORG); a word has "
            "one tag: set task.overlaps: longest to keep the longest span",
            "1 of 2 spans overlap another one (task.overlaps: {}); first a.jsonl, line 1: 0-8 'New York'",
            {"overlaps": "longest"},
            ((0, 14, "ORG"),),
        ),
    ],
)
def test_spans_that_do_not_fit_are_counted_and_refused_or_fitted(
    row: MarkedText, message: str, line: str, key: dict[str, str], found: tuple[tuple[int, int, str], ...]
) -> None:
    said: list[str] = []
    (bad,) = placed(row, report=said.append)
    assert (str(bad), isinstance(bad, BadRow)) == (message, True)
    (example,) = placed(row, given=spans(**key), report=said.append)
    assert mentions_of(example) == found
    assert [
        each.startswith(line.format(value))
        for each, value in zip(said, ["refuse", *key.values()], strict=True)
    ]
    assert {*misfits([row], spans(), tokenizer("bert"))} == {*key}


def test_a_span_of_nothing_that_is_read_is_refused_always() -> None:
    (bad,) = placed(marked("a \x07 b", (2, 3, "X")), given=spans(**FITTING))
    assert str(bad).endswith("the span 2-3 '\\x07' (X) holds no word that the model reads")


def test_words_that_are_given_stay_and_others_are_found_without_a_tokenizer() -> None:
    sentence = TaggedExample("here", {}, ("U.S. led",), ("U.S.", "led"), ((0, 4), (5, 8)), ("B-x", "O"))
    assert placed(sentence, given=words(words="given")) == [sentence]
    (again,) = placed(sentence)
    assert (again.words, again.tags) == (("U", ".", "S", ".", "led"), ("B-x", "I-x", "I-x", "I-x", "O"))
    row = marked("In “Oslo”.", (4, 8, "LOC"))
    assert list(at_words([row], spans(), None)) == [row]
    (example,) = at_words([row], words(words="given"), None)
    assert (example.words, example.tags) == (("In", "“", "Oslo", "”", "."), ("O", "O", "B-LOC", "O", "O"))


def test_invisible_characters_belong_to_their_word() -> None:
    row = marked("\ufeffAnn, Bo\u200f and", (0, 4, "x"), (6, 8, "x"))
    (example,) = placed(row)
    assert mentions_of(example) == ((0, 4, "x"), (6, 9, "x"))
