"""Lines -> a WordPiece or byte-level BPE vocabulary, in an order that never depends on a hash map."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import tokenizers
from tokenizers import models, normalizers, pre_tokenizers, trainers

from bertcli.system.errors import UserError
from bertcli.tokenizer import wordpiece
from bertcli.tokenizer.normalizer import choose_alphabet, cut_at_rare, more_characters
from bertcli.tokenizer.pipelines import byte_level
from bertcli.tokenizer.wordpiece import CONTINUES

MIN_FREQUENCY = 2
"""The least frequency of a pair that is merged: a rarer pair may be a single misspelling."""


def train_wordpiece(
    lines: Iterator[str],
    vocab_size: int,
    characters: Counter[str],
    names: Mapping[str, str],
    normalizer: normalizers.Normalizer,
) -> tokenizers.Tokenizer:
    """Train a WordPiece: special tokens, the alphabet by code point, its `##` pieces, then merges as found.

    The trainer in `tokenizers` numbers characters in the random order of a hash map, and breaks ties by those
    numbers. It therefore gets every single-character piece in a fixed order: characters are counted
    beforehand, and the single-character pieces are passed as special tokens.

    Args:
        characters: the counts of the characters in the normalized lines.
        names: the special tokens by role.

    Raises:
        UserError: the alphabet alone is larger than `vocab_size`.
    """
    alphabet = choose_alphabet(characters, vocab_size, normalizer)
    first = [*names.values(), *_singles(alphabet)]
    if vocab_size < len(first):
        raise UserError(
            f"a vocabulary of {vocab_size:,} entries is too small for this text: its {len(alphabet):,} "
            f"characters, their {CONTINUES} pieces and the special tokens are {len(first):,}. Set "
            f"tokenizer.vocab_size to {len(first):,} or more"
        )
    backend = tokenizers.Tokenizer(models.WordPiece(unk_token=names["unk_token"]))
    backend.normalizer = normalizer
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        min_frequency=MIN_FREQUENCY,
        special_tokens=first,
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        continuing_subword_prefix=CONTINUES,
        show_progress=False,
    )
    if {character for character in characters if not character.isspace()} - {*alphabet}:
        lines = cut_at_rare(lines, characters, alphabet, normalizer=normalizer)
    backend.train_from_iterator(lines, trainer)
    ids = backend.get_vocab(with_added_tokens=False)
    merges = sorted(ids.keys() - set(first), key=ids.__getitem__)
    free = vocab_size - len(first) - len(merges)
    more = more_characters(characters, alphabet, free, entries=lambda character: len(_singles([character])))
    first = [*names.values(), *_singles(sorted({*alphabet, *more}))]
    return wordpiece.pipeline([*first, *merges], normalizer, names["unk_token"])


def _singles(alphabet: Sequence[str]) -> list[str]:
    return [*alphabet, *(f"{CONTINUES}{c}" for c in alphabet if not _stands_alone(c))]


def _stands_alone(character: str) -> bool:
    """True if BERT cuts words at this character, so that it never continues a word."""
    words = pre_tokenizers.BertPreTokenizer().pre_tokenize_str(f"a{character}")
    spaced = normalizers.BertNormalizer().normalize_str(character).startswith(" ")
    return len(words) > 1 or spaced


_PREFIX = {"add_prefix_space": True}
"""The option that reads a text's first word like any other; sentences are stored one by one."""


def train_byte_bpe(
    lines: Iterator[str], vocab_size: int, names: Mapping[str, str], normalizer: normalizers.Normalizer
) -> tokenizers.Tokenizer:
    """Train a byte-level BPE: special tokens, the 256 bytes, then merges in the order they were found.

    Args:
        names: the special tokens by role.

    Raises:
        UserError: the bytes alone are more than `vocab_size`.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    first = [*names.values(), *alphabet]
    if vocab_size < len(first):
        raise UserError(
            f"a byte-level vocabulary of {vocab_size:,} entries is too small: the 256 bytes and the special "
            f"tokens are {len(first):,}. Set tokenizer.vocab_size to {len(first):,} or more"
        )
    backend = byte_level({}, [], _PREFIX)
    backend.normalizer = normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=MIN_FREQUENCY,
        special_tokens=list(names.values()),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    backend.train_from_iterator(lines, trainer)
    model = json.loads(backend.to_str())["model"]
    trained = byte_level(model["vocab"], [tuple(merge) for merge in model["merges"]], _PREFIX)
    trained.normalizer = normalizer
    return trained
