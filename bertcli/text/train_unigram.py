"""Lines -> a Unigram vocabulary (Kudo 2018), by SentencePiece in one thread.

The trainer of `tokenizers` gives another vocabulary in every process.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping

import tokenizers
from tokenizers import normalizers, pre_tokenizers

from bertcli.errors import UserError
from bertcli.text.alphabet import choose_alphabet, cut_at_rare, more_characters
from bertcli.text.pipelines import unigram

_LONGEST_LINE = 1 << 30
"""Bytes: SentencePiece leaves out lines that are longer."""


def train_unigram(
    lines: Iterator[str],
    vocab_size: int,
    characters: Counter[str],
    names: Mapping[str, str],
    normalizer: normalizers.Normalizer,
) -> tokenizers.Tokenizer:
    """Special tokens, then pieces by falling probability.

    Args:
        characters: of the normalized lines.
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
    """At most `num_pieces`, the `required` characters among them, with the logarithms of their
    probabilities."""
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
