"""A paragraph -> its sentences, by `sentencex` and its rules for the language."""

from __future__ import annotations

import re

import sentencex

from bertcli.errors import UserError

_LANGUAGE_CODE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")


def check_language(language: str) -> None:
    """Raise `UserError` where `language` is no ISO 639 code.

    For a code without rules of its own `sentencex` takes those of the nearest language, in the end
    English; it does so for any word at all, and a misspelt one would never be noticed.
    """
    if not _LANGUAGE_CODE.fullmatch(language):
        raise UserError(
            f"corpus.language: {language!r} is no ISO 639 language code; expected two or three small "
            "letters: en, de, fr, hi, sw"
        )


def split_sentences(paragraph: str, language: str) -> list[str]:
    """The sentences of a paragraph in order, stripped, none of them empty."""
    raw_sentences = sentencex.segment(language, paragraph)  # pyright: ignore[reportAttributeAccessIssue]
    return [sentence for raw in raw_sentences if (sentence := raw.strip())]
