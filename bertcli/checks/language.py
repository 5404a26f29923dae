"""A line of text and its expected language -> its likely language.

By py3langid, a naive Bayes classifier over byte n-grams (Lui and Baldwin 2012). It is imported and loaded at
the first line, once a process, which takes most of a second.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

FEWEST_LETTERS = 25
"""The language of a line with fewer is not identified."""
_CERTAIN = 0.9
"""Probability from which a line counts as in another language."""
_READ = 400
"""Characters of a line: enough to identify its language."""
_ALIKE = ({"da", "nb", "nn", "no"}, {"bs", "hr", "sr"}, {"id", "ms"}, {"wuu", "yue", "zh"})
"""Languages that cannot be distinguished in one line."""


@cache
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def other_language(line: str, language: str) -> str | None:
    """The ISO code of the line's language if it is likely not `language`; else "".

    None: the line is too short or has no words, or the classifier does not know `language`.
    """
    line, language = line[:_READ], language.partition("-")[0]
    if sum(map(str.isalpha, line)) < FEWEST_LETTERS:
        return None
    own = next((alike for alike in _ALIKE if language in alike), {language})
    if own.isdisjoint(_identifier().labels):
        return None
    found, probability = _identifier().classify(line)
    if found == "zxx":  # no language: numbers, names, addresses
        return None
    return found if found not in own and probability >= _CERTAIN else ""
