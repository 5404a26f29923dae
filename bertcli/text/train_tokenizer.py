"""Texts -> a vocabulary of any kind, the same for the same texts, bit for bit."""

from __future__ import annotations

import re
import tempfile
import threading
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

import tokenizers
from tokenizers import normalizers

from bertcli.errors import UserError
from bertcli.families.fresh import TokenizerKind
from bertcli.families.tokenizers import BERT, TokenizerFacts
from bertcli.text.new_normalizer import LOOKS_AROUND, casing_note, new_normalizer
from bertcli.text.pipelines import add_special
from bertcli.text.tokenizer import LARGEST_VOCABULARY, Tokenizer
from bertcli.text.train_byte_bpe import train_byte_bpe
from bertcli.text.train_unigram import train_unigram
from bertcli.text.train_wordpiece import train_wordpiece

Result = TypeVar("Result")
RECORD_END = "\n"
_SECONDS_BETWEEN_LINES = 4.0
"""As `terminal.BETWEEN_LINES`, which this layer does not know."""
_PART = re.compile(r"(\S{1000})(?=\S)")
"""A longer word is counted in parts: the time that trainers take grows with the square of its length."""


@dataclass(frozen=True)
class Training:
    """Where and for which language a vocabulary is trained.

    Attributes:
        language: an ISO 639 code, for the rules of lower case.
        spool_folder: for the temporary copy of the texts; None: the system's folder.
        report: takes lines for the user: a doubt, and every few seconds that the trainer works.
    """

    language: str = "en"
    spool_folder: Path | None = None
    report: Callable[[str], None] = lambda line: None


def train_tokenizer(
    texts: Iterable[str],
    vocab_size: int,
    lowercase: bool = True,
    strip_accents: bool = False,
    kind: TokenizerKind = "wordpiece",
    facts: TokenizerFacts = BERT,
    training: Training = Training(),
) -> Tokenizer:
    """Train a vocabulary of at most `vocab_size` entries; fewer where the texts cannot fill it.

    With `strip_accents`, letters lose their marks as in BERT. The first ids are the special tokens of
    `facts`, a family's, in their order there. The texts are read once and spooled to a temporary file.

    Raises:
        UserError: no text at all; `vocab_size` is too small for its characters, or too large; a library is
            missing.
    """
    if vocab_size > LARGEST_VOCABULARY:
        raise UserError(
            f"a vocabulary of {vocab_size:,} entries is too large; {LARGEST_VOCABULARY:,} at most. Set "
            "tokenizer.vocab_size to less: published models have 20,000 to 250,000"
        )
    normalizer = new_normalizer(kind, lowercase, strip_accents, language=training.language)
    with tempfile.TemporaryFile(
        "w+", encoding="utf-8", newline=RECORD_END, dir=training.spool_folder
    ) as spool:
        characters = _count_and_spool(texts, spool, normalizer)
        if not any(not character.isspace() for character in characters):
            raise UserError("there is no text to train a vocabulary on; give files that hold some")
        if lowercase and (note := casing_note(characters, training.language)):
            training.report(note)
        lines = (_PART.sub(r"\1 ", line.rstrip(RECORD_END)) for line in spool)
        names = facts.names

        def train() -> tokenizers.Tokenizer:
            if kind == "byte-bpe":
                return train_byte_bpe(lines, vocab_size, names=names, normalizer=normalizer)
            by_characters = train_wordpiece if kind == "wordpiece" else train_unigram
            return by_characters(lines, vocab_size, characters, names=names, normalizer=normalizer)

        backend = patiently(train, "training the vocabulary", training.report)
    add_special(backend, facts, names, mask_strips=facts.mask_strips)
    return Tokenizer(backend, "the vocabulary", names)


def patiently(work: Callable[[], Result], what: str, report: Callable[[str], None]) -> Result:
    """What `work` returns. It runs in a thread, so that Ctrl-C ends a library's work at once.

    `report` takes a line on `what` every few seconds.
    """
    done: list[Result] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread, begun, lines = threading.Thread(target=run, daemon=True), time.monotonic(), 1
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
        if time.monotonic() - begun > lines * _SECONDS_BETWEEN_LINES:
            report(f"{what}: {time.monotonic() - begun:.0f} s so far")
            lines += 1
    if failed:
        raise failed[0]
    return done[0]


def _count_and_spool(
    texts: Iterable[str], spool: IO[str], normalizer: normalizers.Normalizer
) -> Counter[str]:
    """Write the texts, a line each; returns the characters of their normalized form."""
    written: Counter[str] = Counter()
    for text in texts:
        line = text.replace(RECORD_END, " ")
        # Normalizing each line takes three times as long as counting; very few lines need it.
        by_character = unicodedata.is_normalized("NFC", line.lower()) and not LOOKS_AROUND.search(line)
        written.update(line if by_character else normalizer.normalize_str(line))
        spool.write(f"{line}{RECORD_END}")
    spool.seek(0)
    characters: Counter[str] = Counter()
    for character, count in written.items():
        for normal in normalizer.normalize_str(character):
            characters[normal] += count
    return characters
