"""Texts -> a new tokenizer of any kind; also the training of a Unigram (Kudo 2018).

SentencePiece trains a Unigram in one thread: the trainer of `tokenizers` gives another vocabulary in every
process.
"""

import io
import re
import tempfile
import threading
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

import tokenizers
from tokenizers import normalizers, pre_tokenizers

from bertcli.families.family import TokenizerKind
from bertcli.families.tokenizers import BERT, TokenizerFacts
from bertcli.system.errors import UserError
from bertcli.tokenizer.normalizer import (
    LOOKS_AROUND,
    casing_note,
    choose_alphabet,
    cut_at_rare,
    more_characters,
    new_normalizer,
)
from bertcli.tokenizer.pipelines import add_special, unigram
from bertcli.tokenizer.tokenizer import LARGEST_VOCABULARY, Tokenizer
from bertcli.tokenizer.train_wordpiece import train_byte_bpe, train_wordpiece

_LONGEST_LINE = 1 << 30
"""The most bytes of a line; SentencePiece leaves out longer lines."""


def train_unigram(
    lines: Iterator[str],
    vocab_size: int,
    characters: Counter[str],
    names: Mapping[str, str],
    normalizer: normalizers.Normalizer,
) -> tokenizers.Tokenizer:
    """Train a Unigram: special tokens, then pieces by falling probability.

    Args:
        characters: the counts of the characters in the normalized lines.
        names: the special tokens by role.

    Raises:
        UserError: the alphabet alone is larger than `vocab_size`; SentencePiece is not installed.
    """
    alphabet = choose_alphabet(characters, vocab_size, normalizer)
    smallest = len(alphabet) + 1 + len(names)  # with the blank
    if vocab_size < smallest:
        raise UserError(
            f"a vocabulary of {vocab_size:,} entries is too small for this text: its {len(alphabet):,} "
            f"characters, the blank and the special tokens are {smallest:,}. Set tokenizer.vocab_size to "
            f"{smallest:,} or more"
        )
    # SentencePiece would refuse to leave out many characters.
    known = cut_at_rare(lines, characters, alphabet, normalizer=normalizer)
    pieces = _train(known, vocab_size - len(names), required="".join(alphabet))
    free, rarest = vocab_size - len(names) - len(pieces), min(score for _, score in pieces)
    pieces += [(each, rarest) for each in more_characters(characters, alphabet, free, entries=lambda _: 1)]
    special = [(name, 0.0) for name in names.values()]
    unk_id = list(names).index("unk_token")
    backend = unigram([*special, *pieces], unk_id, [pre_tokenizers.WhitespaceSplit()], scheme="always")
    backend.normalizer = normalizer
    return backend


def _train(lines: Iterator[str], num_pieces: int, required: str) -> list[tuple[str, float]]:
    """Train at most `num_pieces` pieces, which include the `required` characters. Return each piece with the
    logarithm of its probability."""
    try:
        import sentencepiece
    except ImportError:
        raise UserError(
            "a Unigram vocabulary is trained by SentencePiece, which is not installed: pip install "
            "'bertcli[unigram]'. Or set tokenizer.kind to byte-bpe or wordpiece"
        ) from None
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(line for line in lines if not line.isspace() and line),
        model_writer=written,
        model_type="unigram",
        vocab_size=num_pieces + 1,
        hard_vocab_limit=False,
        character_coverage=1.0,
        required_chars=required,
        normalization_rule_name="identity",
        max_sentence_length=_LONGEST_LINE,
        num_threads=1,
        bos_id=-1,
        eos_id=-1,
        minloglevel=2,
    )
    model = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    unknown = model.unk_id()
    return [(model.id_to_piece(i), model.get_score(i)) for i in range(len(model)) if i != unknown]


Result = TypeVar("Result")
RECORD_END = "\n"
_SECONDS_BETWEEN_LINES = 4.0
"""The same value as `terminal.BETWEEN_LINES`, which this layer does not import."""
_PART = re.compile(r"(\S{1000})(?=\S)")
"""The first 1000 letters of a longer word: the time of trainers grows with the square of a word's length."""


@dataclass(frozen=True)
class Training:
    """The language, place and reports of a training.

    Attributes:
        language: an ISO 639 code, for the rules of lower case.
        spool_folder: the folder for the temporary copy of the texts; None means the system's folder.
        report: takes lines for the user: a note on the language, and progress every few seconds.
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
    """Train a vocabulary of at most `vocab_size` entries; it has fewer if the texts cannot fill it.

    `strip_accents` removes the marks of letters, as in BERT. The first ids are the special tokens of `facts`,
    a family's facts, in their order there. The texts are read once and spooled to a temporary file.

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
    """Return the result of `work`, run in a thread so that Ctrl-C ends a library's work at once.

    `report` takes a line about `what` every few seconds.
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
    """Write the texts, one per line. Return the counts of the characters of their normalized form."""
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
