"""Texts -> a WordPiece vocabulary, the same for the same texts, bit for bit."""

from __future__ import annotations

import string
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers

from bertcli.errors import UserError
from bertcli.text.tokenizer import Tokenizer
from bertcli.text.tokenizer_files import Normalization
from bertcli.text.wordpiece import CONTINUES, NAMES, SPECIAL_TOKENS

MIN_ALPHABET = 1000
"""Characters that even a small vocabulary keeps; in a larger one they fill up to a quarter of the entries."""
MIN_FREQUENCY = 2
"""A pair of pieces that is rarer is never merged: it would turn a single misspelling into a piece."""
ALWAYS = string.ascii_letters + string.digits + string.punctuation
"""In every alphabet: people type them, even if this corpus lacks some."""
RECORD_END = "\n"


def train_tokenizer(
    texts: Iterable[str],
    vocab_size: int,
    lowercase: bool = True,
    strip_accents: bool = False,
    spool_folder: Path | None = None,
) -> Tokenizer:
    """Train a vocabulary of at most `vocab_size` entries; fewer where the texts cannot fill it.

    With `strip_accents`, letters lose their marks as in BERT; without it, text is normalized to NFC.

    Ids 0 to 4 are the special tokens, then the alphabet by code point, then its `##` pieces, then merges
    in the order they were found. The texts are read once and spooled to a temporary file (in
    `spool_folder`, or the system's folder for them), so that memory holds only their distinct words.

    The trainer in `tokenizers` numbers characters in the order of a hash map, which is random, and breaks
    ties by those numbers. To prevent that, it gets every single-character piece in a fixed order: characters
    are counted here beforehand, and the `##` pieces are passed as special tokens.

    Raises:
        UserError: no text at all; or the alphabet alone is larger than `vocab_size`.
    """
    normalization = Normalization(lowercase, strip_accents, compose=not strip_accents)
    normalizer = normalization.normalizer()
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline=RECORD_END, dir=spool_folder) as spool:
        characters = _spool(texts, spool, normalizer)
        alphabet = _alphabet(characters, normalizer, max(MIN_ALPHABET, vocab_size // 4))
        if not alphabet:
            raise UserError("there is no text to train a vocabulary on; give files that hold some")
        singles = [*alphabet, *(f"{CONTINUES}{c}" for c in alphabet if not _stands_alone(c))]
        smallest = len(SPECIAL_TOKENS) + len(singles)
        if vocab_size < smallest:
            raise UserError(
                f"a vocabulary of {vocab_size:,} entries is too small for this text: its {len(alphabet):,} "
                f"characters, their {CONTINUES} pieces and the special tokens are {smallest:,}. Set "
                f"tokenizer.vocab_size to {smallest:,} or more"
            )
        lines = (line.rstrip(RECORD_END) for line in spool)
        merges = _train(lines, normalizer, alphabet, singles=singles, vocab_size=vocab_size)
    return Tokenizer.from_vocabulary([*SPECIAL_TOKENS, *singles, *merges], normalization)


def _spool(texts: Iterable[str], spool: IO[str], normalizer: normalizers.Normalizer) -> Counter[str]:
    """Write the texts, a line each; returns their characters, which may be normalized one by one."""
    characters: Counter[str] = Counter()
    for text in texts:
        line = text.replace(RECORD_END, " ")
        # Normalizing each line takes three times as long as counting; very few lines need it.
        is_composed = unicodedata.is_normalized("NFC", line.lower())
        characters.update(line if is_composed else normalizer.normalize_str(line))
        spool.write(f"{line}{RECORD_END}")
    spool.seek(0)
    return characters


def _alphabet(characters: Counter[str], normalizer: normalizers.Normalizer, limit: int) -> list[str]:
    """The commonest characters after normalization, by code point, with ASCII; none if there is no text.

    Each character is normalized alone; the counts still are those of the normalized text.
    """
    counts: Counter[str] = Counter()
    for character, count in characters.items():
        for normal in normalizer.normalize_str(character):
            if not normal.isspace():
                counts[normal] += count
    if not counts:
        return []
    commonest = sorted(counts, key=lambda c: (-counts[c], c))[:limit]
    return sorted({*commonest, *normalizer.normalize_str(ALWAYS)})


def _stands_alone(character: str) -> bool:
    """Whether BERT cuts words at this character, so that it never continues a word."""
    words = pre_tokenizers.BertPreTokenizer().pre_tokenize_str(f"a{character}")
    spaced = normalizers.BertNormalizer().normalize_str(character).startswith(" ")
    return len(words) > 1 or spaced


def _train(
    lines: Iterator[str],
    normalizer: normalizers.Normalizer,
    alphabet: list[str],
    singles: list[str],
    vocab_size: int,
) -> list[str]:
    """The pieces of two or more characters, in the order in which they were merged."""
    backend = tokenizers.Tokenizer(models.WordPiece(unk_token=NAMES["unk_token"]))
    backend.normalizer = normalizer
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    first = [*SPECIAL_TOKENS, *singles]
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=MIN_FREQUENCY,
        special_tokens=first,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        continuing_subword_prefix=CONTINUES,
        show_progress=False,
    )
    backend.train_from_iterator(lines, trainer)
    ids = backend.get_vocab(with_added_tokens=False)
    return sorted(ids.keys() - set(first), key=ids.__getitem__)
