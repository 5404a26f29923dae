"""Texts -> a new tokenizer of any kind, with a vocabulary that never depends on the order of a hash map."""

import io
import json
import re
import tempfile
import threading
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers

from bertcli.families.family import TokenizerKind
from bertcli.families.tokenizers import BERT, TokenizerFacts
from bertcli.system.errors import UserError
from bertcli.system.terminal import BETWEEN_LINES, Report
from bertcli.tokenizer import normalize, wordpiece
from bertcli.tokenizer.normalize import Material
from bertcli.tokenizer.pipelines import add_special, byte_level, unigram
from bertcli.tokenizer.tokenizer import LARGEST_VOCABULARY, Tokenizer

Result = TypeVar("Result")
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
    report: Report = lambda line: None


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
    a family's facts, in their order there. The texts are read once and spooled to a temporary file. The
    normalizer is set here, for every kind.

    Raises:
        UserError: no text at all; `vocab_size` is too small for its characters, or too large; a library is
            missing.
    """
    if vocab_size > LARGEST_VOCABULARY:
        raise UserError(
            f"a vocabulary of {vocab_size:,} entries is too large; {LARGEST_VOCABULARY:,} at most. Set "
            "tokenizer.vocab_size to less: published models have 20,000 to 250,000"
        )
    normalizer = normalize.new_normalizer(kind, lowercase, strip_accents, language=training.language)
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n", dir=training.spool_folder) as spool:
        characters = _count_and_spool(texts, spool, normalizer)
        if all(map(str.isspace, characters)):
            raise UserError("there is no text to train a vocabulary on; give files that hold some")
        if lowercase and (note := normalize.casing_note(characters, training.language)):
            training.report(note)
        lines = (_PART.sub(r"\1 ", line.rstrip("\n")) for line in spool)
        material = Material(lines, characters, vocab_size, names=facts.names, normalizer=normalizer)
        train = {"wordpiece": train_wordpiece, "byte-bpe": train_byte_bpe, "unigram": train_unigram}[kind]
        backend = patiently(lambda: train(material), "training the vocabulary", training.report)
    backend.normalizer = normalizer
    add_special(backend, facts, facts.names, mask_strips=facts.mask_strips)
    return Tokenizer(backend, "the vocabulary", facts.names)


def patiently(work: Callable[[], Result], what: str, report: Report) -> Result:
    """Return the result of `work`, run in a thread so that Ctrl-C ends a library's work at once.

    `report` takes a line about `what` every few seconds.
    """
    done, begun = Future[Result](), time.monotonic()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while wait([done], BETWEEN_LINES).not_done:
        report(f"{what}: {time.monotonic() - begun:.0f} s so far")
    return done.result()


def _count_and_spool(
    texts: Iterable[str], spool: IO[str], normalizer: normalizers.Normalizer
) -> Counter[str]:
    """Write the texts, one per line. Return the counts of the characters of their normalized form."""
    written: Counter[str] = Counter()
    for text in texts:
        line = text.replace("\n", " ")
        # Normalizing each line takes three times as long as counting; very few lines need it.
        is_composed = unicodedata.is_normalized("NFC", line.lower())
        by_character = is_composed and not normalize.LOOKS_AROUND.search(line)
        written.update(line if by_character else normalizer.normalize_str(line))
        spool.write(f"{line}\n")
    spool.seek(0)
    characters: Counter[str] = Counter()
    for character, count in written.items():
        for normal in normalizer.normalize_str(character):
            characters[normal] += count
    return characters


MIN_FREQUENCY = 2
"""The least frequency of a pair that is merged: a rarer pair may be a single misspelling."""


def train_wordpiece(material: Material) -> tokenizers.Tokenizer:
    """Train a WordPiece: special tokens, the alphabet by code point, its `##` pieces, then merges as found.

    The trainer in `tokenizers` numbers characters in the random order of a hash map, and breaks ties by those
    numbers. It therefore gets every single-character piece in a fixed order: characters are counted
    beforehand, and the single-character pieces are passed as special tokens.

    The result has the normalizer. Raises `UserError` if the alphabet alone is larger than the vocabulary.
    """
    names, alphabet = material.names, material.alphabet()
    first = [*names.values(), *_singles(alphabet)]
    entries = f"its {len(alphabet):,} characters, their {wordpiece.CONTINUES} pieces and the special tokens"
    _check_size(material, len(first), entries)
    backend = tokenizers.Tokenizer(models.WordPiece(unk_token=names["unk_token"]))
    backend.normalizer = material.normalizer
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=material.size,
        min_frequency=MIN_FREQUENCY,
        special_tokens=first,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        continuing_subword_prefix=wordpiece.CONTINUES,
        show_progress=False,
    )
    has_rare = not {*alphabet}.issuperset(material.by_frequency())
    backend.train_from_iterator(material.cut_at_rare(alphabet) if has_rare else material.lines, trainer)
    ids = backend.get_vocab(with_added_tokens=False)
    merges = sorted(ids.keys() - set(first), key=ids.__getitem__)
    free = material.size - len(first) - len(merges)
    more = material.more_characters(alphabet, free, lambda character: len(_singles([character])))
    first = [*names.values(), *_singles(sorted({*alphabet, *more}))]
    return wordpiece.pipeline([*first, *merges], material.normalizer, names["unk_token"])


def _check_size(material: Material, smallest: int, entries: str, of_bytes: bool = False) -> None:
    """Raise `UserError` if the vocabulary has fewer than `smallest` entries.

    Args:
        entries: the entries that it must have, in words; `smallest` is their number.
        of_bytes: true if these are the same for every text.
    """
    what, why = ("a byte-level vocabulary", "") if of_bytes else ("a vocabulary", " for this text")
    if material.size < smallest:
        raise UserError(
            f"{what} of {material.size:,} entries is too small{why}: {entries} are {smallest:,}. Set "
            f"tokenizer.vocab_size to {smallest:,} or more"
        )


def _singles(alphabet: Sequence[str]) -> list[str]:
    return [*alphabet, *(f"{wordpiece.CONTINUES}{c}" for c in alphabet if not _stands_alone(c))]


def _stands_alone(character: str) -> bool:
    """True if BERT cuts words at this character, so that it never continues a word."""
    words = pre_tokenizers.BertPreTokenizer().pre_tokenize_str(f"a{character}")
    spaced = normalizers.BertNormalizer().normalize_str(character).startswith(" ")
    return len(words) > 1 or spaced


def train_byte_bpe(material: Material) -> tokenizers.Tokenizer:
    """Train a byte-level BPE: special tokens, the 256 bytes, then merges in the order they were found.

    The caller sets the normalizer of the result. Raises `UserError` if the bytes alone are more than the
    vocabulary may have.
    """
    special, alphabet = list(material.names.values()), sorted(pre_tokenizers.ByteLevel.alphabet())
    smallest = len(special) + len(alphabet)
    _check_size(material, smallest, "the 256 bytes and the special tokens", of_bytes=True)
    # A text's first word is read like any other (`add_prefix_space`): sentences are stored one by one.
    backend = byte_level({}, [], add_prefix_space=True)
    backend.normalizer = material.normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=material.size,
        min_frequency=MIN_FREQUENCY,
        special_tokens=special,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    backend.train_from_iterator(material.lines, trainer)
    model = json.loads(backend.to_str())["model"]
    return byte_level(model["vocab"], [tuple(merge) for merge in model["merges"]], add_prefix_space=True)


_LONGEST_LINE = 1 << 30
"""The most bytes of a line; SentencePiece leaves out longer lines."""


def train_unigram(material: Material) -> tokenizers.Tokenizer:
    """Train a Unigram (Kudo 2018): special tokens, then pieces by falling probability.

    SentencePiece trains it in one thread: the trainer of `tokenizers` gives another vocabulary in every
    process. The caller sets the normalizer of the result. Errors are those of `train_wordpiece`;
    SentencePiece may not be installed.
    """
    special, alphabet = [(name, 0.0) for name in material.names.values()], material.alphabet()
    entries = f"its {len(alphabet):,} characters, the blank and the special tokens"
    _check_size(material, len(alphabet) + 1 + len(special), entries)
    room = material.size - len(special)
    # SentencePiece would refuse to leave out many characters.
    pieces = _train(material.cut_at_rare(alphabet), room, required="".join(alphabet))
    rarest = min(score for _, score in pieces)
    more = material.more_characters(alphabet, room - len(pieces), lambda _: 1)
    pieces += [(character, rarest) for character in more]
    unk_id = list(material.names).index("unk_token")
    return unigram([*special, *pieces], unk_id, [pre_tokenizers.WhitespaceSplit()], scheme="always")


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
