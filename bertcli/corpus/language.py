"""The likely language of lines, and of a single line that may not be in the expected one.

The classifier is py3langid, naive Bayes over byte n-grams (Lui and Baldwin 2012). Each process imports and
loads it at the first line, which takes most of a second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

FEWEST_LETTERS = 25
"""Least number of letters in a line whose language is identified."""
_CERTAIN = 0.9
"""Least probability for a line to count as in another language."""
_READ = 400
"""Number of characters of a line that are enough to identify its language."""
_ALIKE = ({"da", "nb", "nn", "no"}, {"bs", "hr", "sr"}, {"id", "ms"}, {"wuu", "yue", "zh"})
"""Languages that cannot be distinguished in one line."""


@cache
def _identifier() -> LanguageIdentifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def likely_language(lines: Iterable[str]) -> tuple[str | None, float, int]:
    """The commonest language of the lines, as an ISO code, its share of their bytes, and their number.

    Lines that are too short are identified together with the next ones. None: no line has words.
    """
    found: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for text, number, size in _long_enough(lines):
        language = _identifier().classify(text)[0]
        found[language] += number
        sizes[language] += size
    number = found.total()
    del found["zxx"]
    if not found:
        return None, 0.0, 0
    code = found.most_common(1)[0][0]
    own = next((alike for alike in _ALIKE if code in alike), {code})
    return code, sum(sizes[each] for each in own) / sizes.total(), number


def _long_enough(lines: Iterable[str]) -> Iterator[tuple[str, int, int]]:
    """Texts of `FEWEST_LETTERS` or more letters, each with the number of its lines and their bytes."""
    short: list[str] = []
    letters = size = 0
    for full in lines:
        line, of_line = full[:_READ], len(full.encode(errors="replace"))
        if (own := sum(map(str.isalpha, line))) >= FEWEST_LETTERS:
            yield line, 1, of_line
        elif own:
            short.append(line)
            size += of_line
            if (letters := letters + own) >= FEWEST_LETTERS:
                yield "\n".join(short), len(short), size
                short, letters, size = [], 0, 0


def other_language(line: str, language: str) -> str | None:
    """The ISO code of the line's language if that is likely not `language`; else "".

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
