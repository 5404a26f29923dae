"""Texts -> a vocabulary of any kind, the same for the same texts, bit for bit."""

from __future__ import annotations

import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from tokenizers import normalizers

from bertcli.errors import UserError
from bertcli.families.fresh import TokenizerKind
from bertcli.families.tokenizers import BERT, TokenizerFacts
from bertcli.text.pipelines import add_special
from bertcli.text.tokenizer import Tokenizer
from bertcli.text.tokenizer_files import Normalization
from bertcli.text.train_byte_bpe import train_byte_bpe
from bertcli.text.train_unigram import train_unigram
from bertcli.text.train_wordpiece import train_wordpiece

RECORD_END = "\n"


def train_tokenizer(
    texts: Iterable[str],
    vocab_size: int,
    lowercase: bool = True,
    strip_accents: bool = False,
    kind: TokenizerKind = "wordpiece",
    facts: TokenizerFacts = BERT,
    spool_folder: Path | None = None,
) -> Tokenizer:
    """Train a vocabulary of at most `vocab_size` entries; fewer where the texts cannot fill it.

    With `strip_accents`, letters lose their marks as in BERT; without it, text is normalized to NFC (for
    Unigram to NFKC). The first ids are the special tokens of `facts`, a family's, in their order there. The
    texts are read once and spooled to a temporary file (in `spool_folder`, or the system's folder for them).

    Raises:
        UserError: no text at all; `vocab_size` is too small for its characters; a library is missing.
    """
    normalization = Normalization(lowercase, strip_accents, compose=not strip_accents)
    normalizer = normalization.normalizer() if kind == "wordpiece" else _normalizer(kind, normalization)
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline=RECORD_END, dir=spool_folder) as spool:
        characters = _count_and_spool(texts, spool, normalizer)
        if not any(not character.isspace() for character in characters):
            raise UserError("there is no text to train a vocabulary on; give files that hold some")
        lines = (line.rstrip(RECORD_END) for line in spool)
        names = facts.names
        if kind == "wordpiece":
            backend = train_wordpiece(lines, vocab_size, characters, names=names, normalizer=normalizer)
        elif kind == "byte-bpe":
            backend = train_byte_bpe(lines, vocab_size, names=names, normalizer=normalizer)
        else:
            backend = train_unigram(lines, vocab_size, characters, names=names, normalizer=normalizer)
    add_special(backend, facts, names, mask_strips=facts.mask_strips)
    return Tokenizer(backend, "the vocabulary", names)


def _normalizer(kind: TokenizerKind, options: Normalization) -> normalizers.Normalizer:
    """For the kinds that have none of their own. In Unigram, control characters are dropped."""
    # NFKC comes before lower case, because it writes capitals: TM for the trade mark sign.
    steps: list[normalizers.Normalizer] = []
    if kind == "unigram":
        steps += [normalizers.Nmt(), normalizers.NFKC()]
    if options.lowercase:
        steps.append(normalizers.Lowercase())
    if options.strip_accents:
        steps += [normalizers.NFD(), normalizers.StripAccents()]
    if kind != "unigram" or options.lowercase or options.strip_accents:
        steps.append(normalizers.NFC())
    return steps[0] if len(steps) == 1 else normalizers.Sequence(steps)


def _count_and_spool(
    texts: Iterable[str], spool: IO[str], normalizer: normalizers.Normalizer
) -> Counter[str]:
    """Write the texts, a line each; returns the characters of their normalized form."""
    written: Counter[str] = Counter()
    for text in texts:
        line = text.replace(RECORD_END, " ")
        # Normalizing each line takes three times as long as counting; very few lines need it.
        is_composed = unicodedata.is_normalized("NFC", line.lower())
        written.update(line if is_composed else normalizer.normalize_str(line))
        spool.write(f"{line}{RECORD_END}")
    spool.seek(0)
    characters: Counter[str] = Counter()
    for character, count in written.items():
        for normal in normalizer.normalize_str(character):
            characters[normal] += count
    return characters
