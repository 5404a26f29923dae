"""Paragraphs -> sentences."""

from __future__ import annotations

import pytest

from bertcli.errors import UserError
from bertcli.text.sentences import check_language, split_sentences


def test_sentences_are_stripped_and_abbreviations_do_not_end_one():
    text = "  Mr. Smith came.  “Where from?” he asked.   Nobody knew. "
    assert split_sentences(text, "en") == ["Mr. Smith came.", "“Where from?” he asked.", "Nobody knew."]


def test_nothing_is_lost():
    text = "He left. So did she! And then?  The end"
    assert " ".join(split_sentences(text, "en")).split() == text.split()


@pytest.mark.parametrize("language", ["en", "de", "gsw", "zh-hans", "pt-BR"])
def test_language_codes_are_accepted(language: str):
    check_language(language)
    assert split_sentences("A b.", language) == ["A b."]


@pytest.mark.parametrize("language", ["english", "EN", "", "e", "en_GB"])
def test_no_language_code_is_an_error(language: str):
    with pytest.raises(UserError, match=f"corpus.language: '{language}' is no ISO 639 language code"):
        check_language(language)
