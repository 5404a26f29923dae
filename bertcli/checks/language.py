"""A line of text and the language that it should be in -> the one that it likely is in.

By py3langid, a naive Bayes classifier over byte n-grams (Lui and Baldwin 2012). It is imported and loaded for
the first line, once a process: that takes most of a second.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

FEWEST_LETTERS = 25
"""The language of a line with fewer is not identified."""
_CERTAIN = 0.9
"""The probability from which a line counts as another language's."""
_READ = 400
"""Characters of a line: enough to tell."""
_ALIKE = ({"da", "nb", "nn", "no"}, {"bs", "hr", "sr"}, {"id", "ms"}, {"wuu", "yue", "zh"})
"""Languages that a line does not tell from one another."""


@cache
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def other_language(line: str, language: str) -> str | None:
    """The ISO code of what the line likely is in instead of `language`; "" for `language`.

    None: too short, without words, or `language` is not one that the classifier knows.
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
