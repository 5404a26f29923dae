"""Tokenizers of every kind that people bring, as files: some are read here, the others refused."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers

from bertcli.samples import SAMPLES
from bertcli.tokenizer.train import train_tokenizer
from bertcli.tokenizer.wordpiece import SPECIAL_TOKENS, Normalization
from tests.wordpieces import wordpiece

HARD = (
    "Zürich, l'été: ÀÉÎ naïve façade; coöperate, Ångström, Ǆ ﬁne ½ ① Ｆｕｌｌ",
    "cafe\u0301 Nin\u0303o हम बगीचे में घूमने ภาษาไทย مرحبا بالعالم İstanbul ςίγμα Straße",
    "東京は日本の首都です。 漢字 and kana カタカナ ｶﾀｶﾅ 한국어",
    "🎉🙂👩‍👩‍👧 flags 🇩🇪 end\u00a0of\u2003line\u2028next \x07bell \ufffd zero\u200bwidth",
    "<ent>Jane</ent> and <ent> New York in new york, NEW YORK <ent>",
    "don't C++ e.g. 3,141.59 a_b-c ... !!! \t tab  two   blanks " + "w" * 60 + " " + "x" * 120,
    "",
    " ",
)
"""Lines on which tokenizers differ."""


@dataclass(frozen=True)
class Kind:
    """A tokenizer that someone may bring.

    Attributes:
        write: makes its files in a folder; returns what a user would name.
        refused: what the refusal says; None: it is read.
        written_class: what our folders name as its class.
    """

    write: Callable[[Path, list[str]], Path]
    refused: str | None = None
    written_class: str = "BertTokenizer"


def lines(number: int) -> list[str]:
    """`HARD`, and lines of the classics."""
    with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
        text = [line for line in file.read().split("\n") if line]
    return [*HARD, *text[:: len(text) // number][: number - len(HARD)]]


def pieces(texts: list[str], size: int) -> list[str]:
    """A vocabulary of both cases, with accents, for every kind."""
    trained = train_tokenizer([*texts, *(text.lower() for text in texts)], size, lowercase=False)
    extra = ["<ent>", "newyork"]
    return [*(trained.token(i) for i in range(trained.vocab_size)), *extra]


def write_json(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
    return path


def bert(
    folder: Path, pieces: list[str], normalization: Normalization = Normalization(), **config: Any
) -> Path:
    """BERT's own pipeline with BERT's class."""
    wordpiece(pieces, normalization).save(folder)
    change(folder, "tokenizer_config.json", **config)
    return folder


def change(folder: Path, name: str, **values: Any) -> None:
    path = folder / name
    write_json(path, json.loads(path.read_text(encoding="utf-8")) | values)


def pipeline(
    folder: Path,
    pieces: list[str],
    normalizer: Any,
    pre_tokenizer: Any,
    added: tuple[AddedToken, ...] = (),
    **options: Any,
) -> Path:
    """A WordPiece made with the tokenizers library, and saved by it alone."""
    folder.mkdir(parents=True, exist_ok=True)
    prefix = options.get("continuing_subword_prefix", "##")
    ids = {
        piece.replace("##", prefix, 1) if piece.startswith("##") else piece: i
        for i, piece in enumerate(pieces)
    }
    backend = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="[UNK]", **options))
    backend.normalizer, backend.pre_tokenizer = normalizer, pre_tokenizer
    backend.add_special_tokens(list(SPECIAL_TOKENS))
    backend.add_tokens([token for token in added if not token.special])
    backend.add_special_tokens([token for token in added if token.special])
    backend.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


def course(folder: Path, pieces: list[str]) -> Path:
    """As in chapter 6 of the Hugging Face course."""
    steps = [normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()]
    return pipeline(folder, pieces, normalizers.Sequence(steps), pre_tokenizers.Whitespace())


def wrapped(folder: Path, pieces: list[str], tokenizer_class: str) -> Path:
    """The course's tokenizer in a folder of transformers."""
    course(folder, pieces)
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": tokenizer_class})
    return folder


def legacy(folder: Path, pieces: list[str]) -> Path:
    """A folder of the days before tokenizer.json."""
    bert(folder, pieces, do_lower_case=False)
    (folder / "tokenizer.json").unlink()
    write_json(folder / "special_tokens_map.json", {"additional_special_tokens": ["<ent>"]})
    write_json(folder / "added_tokens.json", {"</ent>": len(pieces)})
    return folder


def vocabulary(folder: Path, pieces: list[str]) -> Path:
    bert(folder, pieces)
    return folder / "vocab.txt"


def other_names(folder: Path, pieces: list[str]) -> Path:
    renamed = {"[UNK]": "<unk>", "[PAD]": "<pad>"}
    return pipeline_named(folder, [renamed.get(piece, piece) for piece in pieces])


def pipeline_named(folder: Path, pieces: list[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    ids = {piece: i for i, piece in enumerate(pieces)}
    backend = tokenizers.Tokenizer(models.WordPiece(ids, unk_token="<unk>"))
    backend.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


def byte_level(folder: Path, pieces: list[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    backend = tokenizers.Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel()
    backend.save(str(folder / "tokenizer.json"))
    return folder


def unigram(folder: Path, pieces: list[str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    backend = tokenizers.Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=1))
    backend.save(str(folder / "tokenizer.json"))
    return folder


def in_decoder(folder: Path, pieces: list[str], normalized: bool) -> Path:
    """<ent> stands in tokenizer_config.json; tokenizer.json has it found in the text as it is."""
    bert(folder, pieces)
    data = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "special": True}
    ent = {"id": pieces.index("<ent>"), "content": "<ent>", **flags, "normalized": False}
    write_json(folder / "tokenizer.json", data | {"added_tokens": [*data["added_tokens"], ent]})
    tokens = {str(ent.pop("id")): ent | {"normalized": normalized}}
    change(folder, "tokenizer_config.json", added_tokens_decoder=tokens)
    return folder


BERT = pre_tokenizers.BertPreTokenizer
OBEYS = "PreTrainedTokenizerFast"
ENT = (AddedToken("<ent>", special=True, normalized=False), AddedToken("newyork", single_word=True))

KINDS: dict[str, Kind] = {
    "BERT, uncased": Kind(bert),
    "BERT, cased": Kind(lambda folder, pieces: bert(folder, pieces, Normalization(lowercase=False))),
    "lower case with accents": Kind(
        lambda folder, pieces: bert(folder, pieces, Normalization(strip_accents=False))
    ),
    "CJK off": Kind(lambda folder, pieces: bert(folder, pieces, Normalization(split_chinese=False))),
    "vocab.txt alone": Kind(vocabulary),
    "the course's": Kind(course, written_class=OBEYS),
    "the course's, wrapped": Kind(lambda folder, pieces: wrapped(folder, pieces, OBEYS), written_class=OBEYS),
    "the course's, called BERT's": Kind(
        lambda folder, pieces: wrapped(folder, pieces, "BertTokenizerFast"),
        r"not BERT's pipeline \(normalizer NFD \+ Lowercase \+ StripAccents; pre-tokenizer Whitespace\)",
    ),
    "NFKC": Kind(
        lambda folder, pieces: pipeline(
            folder, pieces, normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()]), BERT()
        ),
        written_class=OBEYS,
    ),
    "WhitespaceSplit": Kind(
        lambda folder, pieces: pipeline(
            folder, pieces, normalizers.BertNormalizer(), pre_tokenizers.WhitespaceSplit()
        ),
        written_class=OBEYS,
    ),
    "a regular expression": Kind(
        lambda folder, pieces: pipeline(
            folder, pieces, normalizers.Replace(Regex(r"\d"), "0"), pre_tokenizers.Whitespace()
        ),
        written_class=OBEYS,
    ),
    "short words": Kind(
        lambda folder, pieces: pipeline(
            folder, pieces, normalizers.BertNormalizer(), BERT(), max_input_chars_per_word=12
        ),
        written_class=OBEYS,
    ),
    "another prefix": Kind(
        lambda folder, pieces: pipeline(
            folder, pieces, normalizers.BertNormalizer(), BERT(), continuing_subword_prefix="@@"
        ),
        written_class=OBEYS,
    ),
    "added tokens": Kind(
        lambda folder, pieces: pipeline(folder, pieces, normalizers.BertNormalizer(), BERT(), added=ENT)
    ),
    "added tokens of the course's": Kind(
        lambda folder, pieces: pipeline(
            folder, pieces, normalizers.Lowercase(), pre_tokenizers.Whitespace(), ENT
        ),
        written_class=OBEYS,
    ),
    "added tokens in tokenizer_config.json": Kind(lambda folder, pieces: in_decoder(folder, pieces, False)),
    "added tokens of files of old": Kind(legacy),
    "added tokens that disagree": Kind(
        lambda folder, pieces: in_decoder(folder, pieces, True), r"disagree on the token '<ent>'"
    ),
    "BertJapanese": Kind(
        lambda folder, pieces: bert(folder, pieces, tokenizer_class="BertJapaneseTokenizer"),
        "is a BertJapaneseTokenizer, which bertcli does not support",
    ),
    "BertJapanese by its keys": Kind(
        lambda folder, pieces: bert(folder, pieces, word_tokenizer_type="mecab"),
        "word_tokenizer_type: 'mecab'",
    ),
    "another class": Kind(
        lambda folder, pieces: bert(folder, pieces, tokenizer_class="XLMRobertaTokenizer"),
        "is a XLMRobertaTokenizer, which bertcli does not support",
    ),
    "ELECTRA's class": Kind(
        lambda folder, pieces: bert(folder, pieces, tokenizer_class="ElectraTokenizerFast")
    ),
    "other names": Kind(other_names, r"lacks \[PAD\], \[UNK\]"),
    "another mask": Kind(
        lambda folder, pieces: bert(folder, pieces, mask_token="<mask>"),
        r"mask_token is '<mask>'; BERT's is \[MASK\]",
    ),
    "byte-level": Kind(byte_level, "a BPE tokenizer; BERT's is a WordPiece"),
    "Unigram": Kind(unigram, "a Unigram tokenizer; BERT's is a WordPiece"),
    "files that disagree on case": Kind(
        lambda folder, pieces: bert(folder, pieces, do_lower_case=False, strip_accents=True),
        "disagree: do_lower_case is true in the first, false in the second",
    ),
    "files that disagree on accents": Kind(
        lambda folder, pieces: bert(folder, pieces, strip_accents=False),
        "disagree: strip_accents is true in the first, false in the second",
    ),
    "files that disagree on CJK": Kind(
        lambda folder, pieces: bert(folder, pieces, tokenize_chinese_chars=False),
        "disagree: tokenize_chinese_chars is true in the first, false in the second",
    ),
}
"""A name for people -> the kind."""
