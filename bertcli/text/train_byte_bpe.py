"""Lines -> a byte-level BPE vocabulary (Radford et al. 2019, section 2.2)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import tokenizers
from tokenizers import normalizers, pre_tokenizers, trainers

from bertcli.errors import UserError
from bertcli.text.pipelines import byte_level
from bertcli.text.train_wordpiece import MIN_FREQUENCY

_PREFIX = {"add_prefix_space": True}
"""The first word of a text is written as any other: sentences are stored one by one."""


def train_byte_bpe(
    lines: Iterator[str], vocab_size: int, names: Mapping[str, str], normalizer: normalizers.Normalizer
) -> tokenizers.Tokenizer:
    """Special tokens, the 256 bytes, then merges in the order they were found.

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
