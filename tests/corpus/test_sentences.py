"""Paragraphs -> sentences."""

from __future__ import annotations

import pytest

from bertcli.corpus import documents
from bertcli.corpus.documents import rules_used, split_sentences


def test_sentences_are_stripped_and_abbreviations_do_not_end_one():
    text = "  Mr. Smith came.  “Where from?” he asked.   Nobody knew. "
    assert split_sentences(text, "en") == ["Mr. Smith came.", "“Where from?” he asked.", "Nobody knew."]


def test_nothing_is_lost():
    text = "He left. So did she! And then?  The end"
    assert " ".join(split_sentences(text, "en")).split() == text.split()


@pytest.mark.parametrize(
    ("language", "rules"),
    [("de", "de"), ("hi", "hi"), ("nds", "de"), ("cs", "sk"), ("gl", "pt"), ("sv", "en"), ("th", "en"),
     ("kl", "da"), ("arz", "ar"), ("rue", "uk"), ("co", "it"), ("ast", "es"), ("wo", "fr"), ("krl", "fi")],
)  # fmt: skip
def test_the_rules_of_a_language_without_its_own_are_named(language: str, rules: str):
    assert rules_used(language) == rules


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "他说这是一个很长的句子。我们在花园里散步！你呢？"),
        ("en", "Mr. Smith (b. 1900) came. “Where from?” he asked. "),
    ],
)
def test_windows_of_a_long_paragraph_change_no_sentence(
    language: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = split_sentences(text * 100, language)
    monkeypatch.setattr(documents, "_WINDOW", 60)
    monkeypatch.setattr(documents, "_AGAIN", 40)
    assert split_sentences(text * 100, language) == whole
    assert split_sentences("a" * 1000, language) == ["a" * 1000]
