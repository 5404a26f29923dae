"""A language code or name -> its ISO 639-1 code, if it has one."""

import re
from pathlib import Path

_LANGUAGES = Path(__file__).with_name("languages.txt")
"""The file of the languages, one a line: its ISO 639-1 code, then its other codes (ISO 639-3 and 639-2, also
of its main variety) and names."""
_CODES = {
    name.casefold(): line.partition(":")[0]
    for line in _LANGUAGES.read_text(encoding="utf-8").splitlines()
    for name in line.split(":")
}
_TWO_LETTERS = frozenset(_CODES.values())
_CODE = re.compile("[a-z]{2,3}([-_][A-Za-z0-9]{2,8})*")


def language_code(language: str) -> str:
    """The code that bertcli uses: `deu`, `de-AT` and `DE` give de; `nds` has no shorter one.

    Raises `ValueError` if `language` is not a code; the message holds the right code if it is known.
    """
    main = re.split("[-_]", language.lower())[0]
    if _CODE.fullmatch(language.lower()) and (len(main) == 3 or main in _TWO_LETTERS):
        return _CODES.get(main, main)
    known = _CODES.get(language.replace("_", " ").strip().casefold())
    if known is not None:
        raise ValueError(f"{language!r} is a language's name; its code is expected: write {known}")
    raise ValueError(
        f"{language!r} is not an ISO 639 language code; expected 2 or 3 small letters: en, de, fr, hi, sw"
    )
