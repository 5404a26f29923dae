"""BERT's WordPiece: special tokens, row, pipeline, and the classes of transformers that use it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from bertcli.families.tokenizers import BERT
from bertcli.system.errors import UserError
from bertcli.tokenizer.normalize import DIVIDES_BYTES

NAMES = BERT.names
"""Role of a special token, as `tokenizer_config.json` calls it -> its default."""
SPECIAL_TOKENS = tuple(NAMES.values())
"""The special tokens; their places, 0 to 4, are their ids in a vocabulary trained here."""
CONTINUES = "##"
"""The prefix of a piece that continues a word."""
LONGEST_WORD = 100
"""The most characters of a word; a longer word is one unknown token."""

_CLEAN = normalizers.Sequence(
    [
        normalizers.Replace(DIVIDES_BYTES, " "),
        normalizers.BertNormalizer(strip_accents=False, lowercase=False),
    ]
)
_WORDS = pre_tokenizers.BertPreTokenizer()

REBUILDS, OBEYS = "BertTokenizer", "PreTrainedTokenizerFast"
"""Classes of transformers. The first rebuilds BERT's pipeline around the vocabulary and ignores
`tokenizer.json`; the second obeys that file."""
REBUILDING = {
    *(REBUILDS, "DistilBertTokenizer", "ElectraTokenizer", "LayoutLMTokenizer", "LxmertTokenizer"),
    *("MobileBertTokenizer", "SqueezeBertTokenizer"),
}
"""The classes with BERT's pipeline; each name may also end in Fast."""


@dataclass(frozen=True)
class Normalization:
    """The changes to a text before it is cut into pieces.

    Attributes:
        strip_accents: true if letters lose their accents; None means the value of `lowercase`, as in BERT.
        split_chinese: true if each CJK ideograph is a word.
    """

    lowercase: bool = True
    strip_accents: bool | None = None
    split_chinese: bool = True

    def normalizer(self) -> normalizers.Normalizer:
        """BERT's normalizer with these options; it drops control characters and makes white space blanks."""
        return normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.split_chinese,
            strip_accents=self.strip_accents,
            lowercase=self.lowercase,
        )


def bert_part(normalizer: normalizers.Normalizer | None) -> normalizers.BertNormalizer | None:
    """The given normalizer, or the one in a sequence with NFC and Replace, if it is BERT's; else None."""
    if isinstance(normalizer, normalizers.Sequence):
        parts = [normalizer[place] for place in range(len(normalizer))]
        others = [part for part in parts if not isinstance(part, normalizers.NFC | normalizers.Replace)]
        normalizer = others[0] if len(others) == 1 else None
    return normalizer if isinstance(normalizer, normalizers.BertNormalizer) else None


def build(tokens: Sequence[str], normalization: Normalization) -> tokenizers.Tokenizer:
    """BERT's tokenizer of a list of pieces; a piece's id is its place in the list."""
    backend = pipeline(tokens, normalization.normalizer(), NAMES["unk_token"])
    special = [token for token in SPECIAL_TOKENS if backend.token_to_id(token) is not None]
    backend.add_special_tokens([tokenizers.AddedToken(t, special=True, normalized=False) for t in special])
    return backend


def pipeline(
    tokens: Sequence[str], normalizer: normalizers.Normalizer, unk_token: str
) -> tokenizers.Tokenizer:
    """BERT's pipeline, without special tokens."""
    ids = {token: i for i, token in enumerate(tokens)}
    backend = tokenizers.Tokenizer(
        models.WordPiece(ids, unk_token=unk_token, max_input_chars_per_word=LONGEST_WORD)
    )
    backend.normalizer = normalizer
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix=CONTINUES)
    return backend


def unread(text: str) -> int:
    """The number of characters of a text in words that are too long to be read."""
    longest = [word for word in text.split() if len(word) > LONGEST_WORD]
    parts = (part for word in longest for part, _ in _WORDS.pre_tokenize_str(_CLEAN.normalize_str(word)))
    return sum(len(part) for part in parts if len(part) > LONGEST_WORD)


def usual_rows(cls_token: tuple[str, int], sep_token: tuple[str, int]) -> processors.TemplateProcessing:
    """The rows [CLS] A [SEP], and [CLS] A [SEP] B [SEP] in two segments: BERT's, and the default of files."""
    (cls, _), (sep, _) = cls_token, sep_token
    single = [f"{cls}:0", "$A:0", f"{sep}:0"]
    pair = [*single, "$B:1", f"{sep}:1"]
    return processors.TemplateProcessing(single=single, pair=pair, special_tokens=[cls_token, sep_token])


def check(backend: tokenizers.Tokenizer, names: Mapping[str, str], where: str) -> None:
    """Raise `UserError` if a WordPiece's vocabulary lacks a special token, or has another unknown token."""
    own = backend.get_vocab(with_added_tokens=False)  # WordPiece itself looks up the unknown token there
    unknown = names["unk_token"]
    missing = [
        name
        for name in names.values()
        if backend.token_to_id(name) is None or (name == unknown and name not in own)
    ]
    if missing:
        raise UserError(
            f"{where}: the vocabulary lacks {', '.join(missing)}; a BERT vocabulary holds "
            f"{' '.join(names.values())}, each on a line of its own. Add what is missing, or leave "
            "tokenizer.path out to train a vocabulary"
        )
    if backend.model.unk_token != unknown:
        raise UserError(
            f"{where}: the unknown token is {backend.model.unk_token!r}; BERT's is {unknown}. Set unk_token "
            f"to {unknown}, or give a BERT tokenizer's files"
        )


def differences(pipeline: Mapping[str, Any]) -> list[str]:
    """The differences between a `tokenizer.json` and the pipeline of `REBUILDING`, apart from its options."""
    normalizer, before, model = pipeline["normalizer"], pipeline["pre_tokenizer"], pipeline["model"]
    found = []
    if (normalizer or {}).get("type") != "BertNormalizer":
        found.append(f"normalizer {_kind(normalizer)}")
    elif not normalizer["clean_text"]:
        found.append("normalizer without clean_text")
    if (before or {}).get("type") != "BertPreTokenizer":
        found.append(f"pre-tokenizer {_kind(before)}")
    for key, value in (("continuing_subword_prefix", CONTINUES), ("max_input_chars_per_word", LONGEST_WORD)):
        if model[key] != value:
            found.append(f"{key} {model[key]!r}")
    return found


def _kind(part: Mapping[str, Any] | None) -> str:
    """The type of a normalizer or pre-tokenizer; for a sequence, the types of its parts."""
    if part is None:
        return "none"
    inner = part.get("normalizers") or part.get("pretokenizers") or []
    return " + ".join(each["type"] for each in inner) or part["type"]
