"""The rules for one document, each on a text that it is for and on one that it is not for."""

from __future__ import annotations

import random

import pytest

from bertcli.config.corpus import CleanConfig
from bertcli.corpus.clean.rules import mended, reason_against, repeats_itself, without_shared, words_of
from tests.corpus.builds import short_chapters

KEYS = CleanConfig()
GERMAN = [
    "Es war einmal ein Müller, der hatte drei Söhne, eine Mühle, einen Esel und einen Kater.",
    "Die Söhne mußten mahlen, der Esel Getreide holen und Mehl forttragen, die Katze mußte die Mäuse fangen.",
]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The cafÃ© is closed; itâ€™s a pity.", "The café is closed; it’s a pity."),
        ("plain \x00text\x07 with\ufeff marks\x7f", "plain text with marks"),
        ("“Quotes” stay as they are — and dashes too…", "“Quotes” stay as they are — and dashes too…"),
        ("e\u0301 in two signs", "é in two signs"),
        ("e\x07\u0301 parted by a control", "é parted by a control"),
        ("  blanks at the ends \u200b", "blanks at the ends \u200b"),
        ("a page\x0cbreak, a line\u2028and an old\rMac", "a page break, a line and an old Mac"),
        ("Größe, naïve, Ñandú, Привет, 日本語, 👍🏽", "Größe, naïve, Ñandú, Привет, 日本語, 👍🏽"),
    ],
)
def test_a_line_is_mended_and_nothing_else_is_changed(line: str, expected: str) -> None:
    assert mended(line) == expected
    assert mended(expected) == expected


def test_real_text_is_not_changed() -> None:
    for chapter in short_chapters()[:40]:
        for line in chapter.split("\n"):
            assert mended(line) == line.strip()


def test_words_have_no_case_and_no_punctuation_and_signs_are_words_of_their_own() -> None:
    assert words_of("“Don’t,” said ALICE.") == ["don", "t", "said", "alice"]
    assert words_of("日本語の本 and カタ") == ["日", "本", "語", "の", "本", "and", "カ", "タ"]
    assert words_of("한국어 책") == ["한국어", "책"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("यह हिन्दी की भाषा है।", ["यह", "हिन्दी", "की", "भाषा", "है"]),
        ("நான் தமிழ் பேசுகிறேன்.", ["நான்", "தமிழ்", "பேசுகிறேன்"]),
        ("ที่นี่ มีน้ำ", ["ที่นี่", "มีน้ำ"]),
        ("كَتَبَ، الكِتابُ", ["كَتَبَ", "الكِتابُ"]),
        ("e\u0301te\u0301 İzmir", ["e\u0301te\u0301", "i\u0307zmir"]),
        ("a ❤\ufe0f b", ["a", "b"]),  # a mark alone is no word
    ],
)
def test_marks_are_parts_of_their_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_shared_lines_go_at_the_edges_alone() -> None:
    lines = [f"line {number}" for number in range(40)]
    shared = [number in (0, 3, 15, 39) for number in range(40)]
    assert without_shared(lines, shared) == [line for n, line in enumerate(lines) if n not in (0, 3, 39)]
    assert without_shared(lines[:3], [True, False, True]) == ["line 1"]


def test_prose_stays_and_what_repeats_itself_does_not() -> None:
    for chapter in short_chapters():
        lines = chapter.split("\n")
        assert not repeats_itself(lines, words_of(chapter))
    assert repeats_itself(["buy now"] * 5 + ["at the best price"], words_of("buy now " * 5))
    spam = "the best price in town is our price and our price is " * 20
    assert repeats_itself([spam], words_of(spam))
    some = " ".join(f"word{number}" for number in range(60))  # most words are different ones
    assert not repeats_itself([some], words_of(some))
    assert repeats_itself(
        [some + " and now for some more of it" * 6], words_of(some + " and now for some more" * 9)
    )
    draw = random.Random(0)
    lists = [" ".join(draw.choices("abcdefghij", k=60)) for _ in range(30)]
    assert not repeats_itself(["the one", "and the other"], words_of("the one and the other"))
    assert repeats_itself([*lists, *lists[:20]], words_of(" ".join(lists)))


@pytest.mark.parametrize(
    ("lines", "language", "rule"),
    [
        (["Too short."], "en", "fewest_words"),
        (GERMAN, "de", None),
        (GERMAN, "en", "language"),
        (["1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"], "en", None),
        (["word"] * 30, "en", "repetition"),
    ],
)
def test_a_document_is_left_out_by_the_first_rule_against_it(lines, language: str, rule) -> None:
    words = words_of("\n".join(lines))
    assert reason_against(lines, words, language, KEYS) == rule
    off = CleanConfig(fewest_words=None, repetition=False, language=False)
    assert reason_against(lines, words, language, off) is None
