"""A path -> the file that holds a tokenizer's vocabulary, and the normalization for a vocab.txt."""

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
"""The vocabulary files in order of preference; those after the second need the folder's `config.json`."""


@dataclass(frozen=True)
class Normalization:
    """The changes to a text before it is cut into pieces."""

    lowercase: bool = True
    strip_accents: bool | None = None
    """True if letters lose their accents; None means the value of `lowercase`, as in BERT."""
    split_chinese: bool = True
    """True if each CJK ideograph is a word."""

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


def find_tokenizer_file(path: Path, given: Normalization) -> tuple[Path, Normalization]:
    """The tokenizer's file at `path`, and the normalization for a `vocab.txt`.

    `path` is the file, a folder that holds one, or a run; a run's model is preferred to its store.
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
    run = RunLayout(path)  # `path` may also be a store
    for folder in (path, run.model, run.store / "tokenizer", path / "tokenizer"):
        for name in VOCABULARY_FILES:
            if has_file(folder / name):
                return folder / name, _folder_normalization(folder, given)
    raise UserError(
        f"{path}: holds neither tokenizer.json nor vocab.txt; expected one of them in a tokenizer's folder, "
        f"or another model's {', '.join(OTHER_VOCABULARIES)}"
    )


def read_vocabulary(path: Path) -> list[str]:
    """The pieces of a `vocab.txt`, one per line.

    Only a newline ends a line: U+2028 and similar characters may be pieces. Raises `UserError` if the file
    is not a vocabulary.
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
