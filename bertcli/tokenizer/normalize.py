"""What a new vocabulary is made of: normalized text (dropped characters, word boundaries, lower case), and an
alphabet.

Only plain steps of the tokenizers library are used, so that a `tokenizer.json` describes all of it.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tokenizers import Regex, normalizers

from bertcli.families.family import TokenizerKind

_DIVIDES = "\t-\r\x1c-\x1f\x85\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000"
"""White space, and U+200B, which divides words in Khmer."""
_DROPPED = "\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
"""Control characters, marks of writing direction, soft hyphens. Joiners (U+200C, U+200D) are letters."""
DIVIDES, DIVIDES_BYTES = f"[{_DIVIDES}]", "\u200b"
DIVIDES_PIECES = f"[{_DIVIDES}\u2581]"
"""The dividers, and the sign that represents a blank in the pieces of a Unigram."""
DROPPED = f"[{_DROPPED}\ufff9-\ufffb\ufffd\U000e0001]"
FINAL_SIGMA = r"(?<=[\p{L}\p{M}])Σ(?![\p{M}\u200d]*\p{L})".replace(r"\u200d", "\u200d")
"""A capital sigma at the end of a word, which becomes ς; lower-casing gives σ everywhere else."""
OWN_PATTERNS = frozenset((DIVIDES, DIVIDES_BYTES, DIVIDES_PIECES, DROPPED, FINAL_SIGMA))
"""The regular expressions used here; none looks at a character beyond a blank."""

TURKIC = ("tr", "az", "crh", "gag")
"""Languages in which the pairs I, ı and İ, i are the capital and the small form of two letters."""
_TURKIC_SHARE = 0.1
"""The ratio of ı to i above which a text seems to be in a Turkic language; in Turkish it is 0.6."""
_LITHUANIAN = {"Ì": "i\u0307\u0300", "Í": "i\u0307\u0301", "Ĩ": "i\u0307\u0303"} | {
    f"{capital}{accent}": f"{small}\u0307{accent}"
    for capital, small in (("J", "j"), ("Į", "į"))
    for accent in "\u0300\u0301\u0303"
}
"""Letters that keep their dot under an accent in Lithuanian (Unicode's SpecialCasing)."""
LOOKS_AROUND = re.compile("Σ|[JĮ][\u0300\u0301\u0303]")
"""Letters whose small form depends on their neighbors."""


def casing_rules(language: str) -> str:
    """The words for a language's own rules of lower case; "" if it has none."""
    if language in TURKIC:
        return f"by the rules of {language}: I becomes ı, and İ becomes i"
    return "by the rules of lt: i keeps its dot below an accent" if language == "lt" else ""


def casing_note(characters: Mapping[str, int], language: str) -> str:
    """A note for the user if the lower-cased `characters` seem to be of another language, else ""."""
    if language in TURKIC or characters.get("ı", 0) < _TURKIC_SHARE * characters.get("i", 0) + 1:
        return ""
    return (
        f"note: the text has the letter ı, but its language is said to be {language}, so that I becomes i. "
        "For Turkish or Azerbaijani set corpus.language (tokenizer train: --language) to tr or az"
    )


def new_normalizer(
    kind: TokenizerKind, lowercase: bool, strip_accents: bool, language: str
) -> normalizers.Normalizer:
    """The normalizer of a new vocabulary. It gives text in Unicode's NFC, so that a letter with marks is the
    same however it was typed.

    Byte-level BPE keeps every character, except that U+200B becomes a blank.

    Args:
        language: an ISO 639 code, for the rules of lower case.
    """
    steps: list[normalizers.Normalizer] = []
    if kind == "byte-bpe":
        steps.append(normalizers.Replace(Regex(DIVIDES_BYTES), " "))
    else:
        divides = DIVIDES if kind == "wordpiece" else DIVIDES_PIECES
        steps += [normalizers.Replace(Regex(divides), " "), normalizers.Replace(Regex(DROPPED), "")]
    if lowercase:
        steps += [normalizers.NFC(), *_casing(language)]
    if kind == "wordpiece":
        steps.append(
            normalizers.BertNormalizer(
                clean_text=False, handle_chinese_chars=True, strip_accents=strip_accents, lowercase=lowercase
            )
        )
    else:
        steps += [normalizers.Lowercase()] * lowercase
        steps += [normalizers.NFD(), normalizers.StripAccents()] if strip_accents else []
    return normalizers.Sequence([*steps, normalizers.NFC()])


def _casing(language: str) -> list[normalizers.Normalizer]:
    """The steps before lower-casing by letter. Lower-casing alone would make two characters of İ."""
    rules = {"İ": "i"}
    if language in TURKIC:
        rules["I"] = "ı"
    elif language == "lt":
        rules |= _LITHUANIAN
    sigma = normalizers.Replace(Regex(FINAL_SIGMA), "ς")
    return [sigma, *(normalizers.Replace(capital, small) for capital, small in rules.items())]


MIN_ALPHABET = 1000
"""The characters that even a small vocabulary may keep; a larger one has up to a quarter of its entries."""
ALWAYS = string.ascii_letters + string.digits + string.punctuation
"""Characters of every alphabet: people type them, even if this corpus lacks some."""


@dataclass(frozen=True)
class Material:
    """What a vocabulary is made of.

    Attributes:
        lines: the texts, not normalized; an iterator, which one reading uses up.
        characters: the counts of the characters in the normalized lines.
        size: the most entries of the vocabulary, special tokens included.
        names: the special tokens by role.
        normalizer: the normalizer of the vocabulary, which made the text in which `characters` were counted.
    """

    lines: Iterator[str]
    characters: Counter[str]
    size: int
    names: Mapping[str, str]
    normalizer: normalizers.Normalizer

    def by_frequency(self) -> list[str]:
        """The characters without white space, the commonest first."""
        visible = [character for character in self.characters if not character.isspace()]
        return sorted(visible, key=lambda c: (-self.characters[c], c))

    def alphabet(self) -> list[str]:
        """The commonest characters and `ALWAYS`, by code point."""
        limit = max(MIN_ALPHABET, self.size // 4)
        return sorted({*self.by_frequency()[:limit], *self.normalizer.normalize_str(ALWAYS)})

    def more_characters(self, alphabet: Sequence[str], free: int, entries: Callable[[str], int]) -> list[str]:
        """The commonest characters outside `alphabet` that fit into `free` entries of a trained vocabulary.

        `entries` gives the number of entries that a character takes.
        """
        known, more = set(alphabet), list[str]()
        for character in self.by_frequency():
            if free <= 0:
                break
            if character not in known and entries(character) <= free:
                free -= entries(character)
                more.append(character)
        return more

    def cut_at_rare(self, alphabet: Sequence[str]) -> Iterator[str]:
        """The normalized lines, with a blank for each character outside `alphabet`: it would be unknown."""
        blanks = {ord(character): " " for character in {"\0", *self.characters} - {*alphabet}}
        return (self.normalizer.normalize_str(line).translate(blanks) for line in self.lines)
