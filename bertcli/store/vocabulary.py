"""The tokenizer of a store: the one that the config names, or one trained on the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bertcli.config.schema import CorpusConfig, PretrainConfig, TokenizerConfig
from bertcli.families.fresh import TokenizerKind
from bertcli.families.registry import UNNAMED
from bertcli.families.tokenizers import TOKENIZERS
from bertcli.store.progress import Report, progress_display
from bertcli.text.sample import SAMPLE_BYTES, sample_paragraphs, sample_share
from bertcli.text.sources import Source
from bertcli.text.tokenizer import Tokenizer
from bertcli.text.train_tokenizer import Training, train_tokenizer

KINDS: dict[TokenizerKind, str] = {
    "wordpiece": "WordPiece",
    "byte-bpe": "byte-level BPE",
    "unigram": "Unigram",
}
"""`tokenizer.kind` -> its name in messages."""


def given_tokenizer(config: PretrainConfig) -> str | None:
    """The path of the tokenizer that the config names; None: one is trained on the corpus."""
    teacher = None if config.distillation is None else config.distillation.teacher
    return config.model.init_from or config.tokenizer.path or teacher


def load_given_tokenizer(config: PretrainConfig) -> Tokenizer | None:
    """The tokenizer that the config names; None: one is trained on the corpus."""
    path = given_tokenizer(config)
    if path is None:
        return None
    options = config.tokenizer
    return Tokenizer.load(Path(path).expanduser(), options.lowercase, options.strips_accents())


def train_on_corpus(
    sources: Sequence[Source],
    corpus: CorpusConfig,
    options: TokenizerConfig,
    report: Report,
    model_type: str = UNNAMED,
    spool_folder: Path | None = None,
) -> Tokenizer:
    """Train a vocabulary on the corpus, or on an even sample of a large one; `report` takes a line on it.

    `model_type`: its special tokens are those of this family.
    """
    size, share = options.vocab_size, sample_share(sources)
    sample = f"an even sample of the text, {share:.2%}, about {SAMPLE_BYTES // 10**6} MB"
    report(
        f"training a {KINDS[options.kind]} vocabulary of {size:,} entries on "
        f"{'all of the text' if share == 1.0 else sample}"
    )
    with progress_display("reading", sources, report) as advance:
        tokenizer = train_tokenizer(
            sample_paragraphs(sources, corpus, share, progress=advance),
            size,
            options.lowercase,
            strip_accents=options.strips_accents(),
            kind=options.kind,
            facts=TOKENIZERS[model_type],
            training=Training(corpus.language, spool_folder, report),
        )
    if tokenizer.vocab_size < size:
        report(f"note: the text is too short for {size:,} entries: it gives {tokenizer.vocab_size:,}")
    return tokenizer
