"""A path -> the file that holds a tokenizer's vocabulary, and how a vocab.txt's text is normalized."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tokenizers import normalizers

from bertcli.families.tokenizers import TOKENIZERS
from bertcli.folders.run_layout import RunLayout
from bertcli.system.errors import UserError
from bertcli.system.files import has_file, plain_bytes
from bertcli.system.formats import read_json

OTHER_VOCABULARIES = tuple(
    {facts.files[0]: None for facts in TOKENIZERS.values() if facts.kind != "WordPiece" and facts.files}
)
VOCABULARY_FILES = ("tokenizer.json", "vocab.txt", *OTHER_VOCABULARIES)
"""In the order of the preference; the others need the folder's `config.json` to be understood."""


@dataclass(frozen=True)
class Normalization:
    """How text is changed before it is cut into pieces."""

    lowercase: bool = True
    strip_accents: bool | None = None
    """None: as `lowercase`, like BERT."""
    split_chinese: bool = True
    """Each CJK ideograph is a word."""

    def normalizer(self) -> normalizers.Normalizer:
        """BERT's normalizer: drops control characters, turns white space to blanks, and these options."""
        return normalizers.BertNormalizer(
            clean_text=True,
            handle_chinese_chars=self.split_chinese,
            strip_accents=self.strip_accents,
            lowercase=self.lowercase,
        )


def bert_part(normalizer: normalizers.Normalizer | None) -> normalizers.BertNormalizer | None:
    """BERT's normalizer: the given one, or the part of a sequence with Unicode's NFC; else None."""
    if isinstance(normalizer, normalizers.Sequence):
        parts = [normalizer[place] for place in range(len(normalizer))]
        others = [part for part in parts if not isinstance(part, normalizers.NFC | normalizers.Replace)]
        normalizer = others[0] if len(others) == 1 else None
    return normalizer if isinstance(normalizer, normalizers.BertNormalizer) else None


def find_tokenizer_file(path: Path, given: Normalization) -> tuple[Path, Normalization]:
    """The tokenizer's file at `path`, and the normalization for a vocab.txt.

    `path` is the file, or a folder with one: also a run, of its model or else of its store.
    """
    if has_file(path):
        if path.name in OTHER_VOCABULARIES:
            raise UserError(
                f"{path}: this file alone does not say how it is read. Give its folder, with the model's "
                "config.json"
            )
        return path, given
    if not path.is_dir():
        raise UserError(
            f"{path}: no such tokenizer; expected a vocab.txt, a tokenizer.json or a folder with one"
        )
    run = RunLayout(path)  # or a store
    for folder in (path, run.model, run.store / "tokenizer", path / "tokenizer"):
        for name in VOCABULARY_FILES:
            if has_file(folder / name):
                return folder / name, _folder_normalization(folder, given)
    raise UserError(
        f"{path}: holds neither tokenizer.json nor vocab.txt; expected one of them in a tokenizer's folder, "
        f"or another model's {', '.join(OTHER_VOCABULARIES)}"
    )


def read_vocabulary(path: Path) -> list[str]:
    """The pieces of a vocab.txt, one a line.

    Only a newline ends a line: U+2028 and similar characters may be pieces. Raises `UserError` where the
    file is not a vocabulary.
    """
    try:
        text = plain_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path}: not UTF-8 at byte {error.start}; a vocab.txt is UTF-8, a piece a line"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    tokens = [line.removesuffix("\r") for line in text.split("\n")]
    if tokens[-1] == "":
        tokens.pop()
    seen: dict[str, int] = {}
    for number, token in enumerate(tokens, start=1):
        if token in seen:
            raise UserError(
                f"{path}: line {number} repeats the piece {token!r} of line {seen[token]}; remove one"
            )
        seen[token] = number
    return tokens


def _folder_normalization(folder: Path, given: Normalization) -> Normalization:
    path = folder / "tokenizer_config.json"
    if not has_file(path):
        return given
    config = read_json(path)
    found = {key: config.get(key) for key in ("do_lower_case", "strip_accents", "tokenize_chinese_chars")}
    for key, value in found.items():
        if not isinstance(value, bool | None):
            raise UserError(
                f"{path}: {key}: {value!r} is neither true, false nor null; set it to one of them"
            )
    lowercase, strip_accents, split_chinese = found.values()
    return Normalization(
        lowercase=given.lowercase if lowercase is None else lowercase,
        strip_accents=strip_accents,
        split_chinese=split_chinese is not False,
    )
