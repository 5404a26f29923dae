"""A line of text and the language that it should be in -> the one, or the script, that it likely is in.

By function words, which make up a third of any prose, and by script. It knows the languages of
`function_words.py` and takes near ones (Danish and Norwegian) for each other; it does not judge a line of
few words, nor does it find a language without a list in a corpus of the same script.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from bertcli.checks.function_words import FUNCTION_WORDS

FEWEST_WORDS = 8
"""A shorter line is not judged."""
_FEWEST_LETTERS = 5
"""Nor one of fewer letters, every fourth character looked at; scripts without blanks have no words."""
_FEWEST, _SHARE, _TIMES = 2, 0.2, 2
"""A line is in another language if it has more of that one's function words (each counted once) than this
number, than this share of its words, and than so many for each one of its own language."""
_READ = 400
"""Characters of a line: enough to tell."""

_WORD = re.compile(r"[^\W\d_]+")
_SCRIPTS: dict[str, tuple[str, ...]] = {
    "LATIN": (
        *FUNCTION_WORDS,
        "af",
        "ca",
        "cy",
        "et",
        "eu",
        "hr",
        "is",
        "lt",
        "lv",
        "ms",
        "sk",
        "sl",
        "sq",
        "sw",
        "vi",
    ),
    "CYRILLIC": ("ru", "uk", "bg", "be", "mk"),
    "GREEK": ("el",),
    "ARABIC": ("ar", "fa", "ur", "ps"),
    "HEBREW": ("he", "yi"),
    "DEVANAGARI": ("hi", "mr", "ne", "sa"),
    "BENGALI": ("bn", "as"),
    "TAMIL": ("ta",),
    "TELUGU": ("te",),
    "KANNADA": ("kn",),
    "MALAYALAM": ("ml",),
    "GUJARATI": ("gu",),
    "THAI": ("th",),
    "GEORGIAN": ("ka",),
    "ARMENIAN": ("hy",),
    "ETHIOPIC": ("am", "ti"),
    "HANGUL": ("ko",),
    "CJK": ("zh", "ja"),
}
_SCRIPT_OF = {language: script for script, languages in _SCRIPTS.items() for language in languages}
_ONE_SCRIPT = {"HIRAGANA": "CJK", "KATAKANA": "CJK"}


def is_judged(language: str) -> bool:
    """Whether lines can be told from those of `language` at all (an ISO 639 code)."""
    return language.partition("-")[0] in _SCRIPT_OF


def other_language(line: str, language: str) -> str | None:
    """What the line likely is in instead of `language`: an ISO code or a script; "" for `language`.

    None: too short to judge.
    """
    language = language.partition("-")[0]
    words = _WORD.findall(line[:_READ].lower())
    script = _main_script(line)
    if script is None or (script != "CJK" and len(words) < FEWEST_WORDS):
        return None
    if script != _SCRIPT_OF[language]:
        return script.title()
    own = FUNCTION_WORDS.get(language)
    if own is None:
        return ""
    different = set(words)
    likeliest, most = "", max(_FEWEST, _SHARE * len(different), _TIMES * len(different & own))
    for other, its_words in FUNCTION_WORDS.items():
        found = len(different & its_words)
        if found > most:
            likeliest, most = other, found
    return likeliest


def _main_script(line: str) -> str | None:
    """The script of most letters, by the first word of their Unicode names; None: too few letters."""
    letters = [character for character in line[:_READ:4] if character.isalpha()]
    if len(letters) < _FEWEST_LETTERS:
        return None
    scripts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in letters)
    script = scripts.most_common(1)[0][0]
    return _ONE_SCRIPT.get(script, script)
