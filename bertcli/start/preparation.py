"""A vocabulary and a store, built of a small text or samples of a large one: their time and tokens."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertcli.config.schema import PretrainConfig
from bertcli.config.section import AUTO
from bertcli.errors import UserError
from bertcli.runs.recipe import decided_config, update_sections
from bertcli.start.amount import Amount, write_sample
from bertcli.store.build import num_processes, prepare_store
from bertcli.store.fit import UNKNOWN
from bertcli.store.vocabulary import given_tokenizer
from bertcli.text.sources import Source

SAMPLES = (1_500_000, 5_000_000)
"""Bytes of two samples: a vocabulary and a store of each show what those of all of the text will take."""
_FRACTIONS = (0.1, 0.2, 0.35, 0.5, 0.0)
"""Of `corpus.heldout_fraction`, until two documents are held out; at last none."""


@dataclass(frozen=True)
class Prepared:
    """A vocabulary and a store, of all of the text or of a sample.

    Attributes:
        config: whose store is built.
        seconds: for all of the text.
        tokens, heldout_tokens: to train on and held out, in all of the text.
        heldout_fraction: with which two documents or more are held out.
        unk_rate: share of the tokens that are unknown.
        unk_rate_before: with the kind of vocabulary that is usual, where that is not taken for it; else 0.
    """

    config: PretrainConfig
    seconds: float
    tokens: float
    heldout_tokens: float
    heldout_fraction: float
    unk_rate: float
    unk_rate_before: float = 0.0


@contextmanager
def prepared(config: PretrainConfig, sources: Sequence[Source], amount: Amount) -> Iterator[Prepared]:
    """Build vocabulary and store of a small text, or those of two samples of a larger one, in a folder that
    is deleted at the end of the context.

    Args:
        config: with `tokenizer.vocab_size` decided.

    Raises `UserError` for a text that gives no store.
    """
    with tempfile.TemporaryDirectory() as scratch:
        if amount.is_exact and amount.text_bytes <= SAMPLES[-1]:
            yield _build_readable(config, config, Path(scratch), sources=sources, share=1.0)
            return
        corpus = config.corpus
        builds: list[tuple[int, Prepared]] = []
        for number, size in enumerate(SAMPLES):
            folder = Path(scratch) / str(number)
            folder.mkdir()
            written = write_sample(sources, corpus, size, path=folder / "sample.txt")
            format = "sentences" if corpus.format == "sentences" else "text"
            keys = {"files": [str(folder / "sample.txt")], "format": format, "document": "blank-line"}
            keys |= {"join_lines": False, "encoding": "utf-8", "encodings": {}}
            sampled = update_sections(config, {"corpus": keys})
            share = written / amount.text_bytes
            builds.append((written, _build_readable(sampled, config, folder, sources=sources, share=share)))
        (small, first), (large, last) = builds
        each = max((last.seconds - first.seconds) / max(1, large - small), last.seconds / large / 2)
        seconds = last.seconds + each * max(0.0, amount.text_bytes - large)
        fraction = _usual_fraction(amount)
        heldout_tokens = fraction * last.tokens
        yield replace(last, seconds=seconds, heldout_tokens=heldout_tokens, heldout_fraction=fraction)


def _build_readable(
    config: PretrainConfig, whole: PretrainConfig, folder: Path, sources: Sequence[Source], share: float
) -> Prepared:
    """As `_build`; where its vocabulary leaves tokens unknown, with one of bytes, which reads any text.

    `whole`: the config of all of the text, by which the vocabulary has its size.
    """
    built = _build(config, folder, sources, share=share)
    if built.unk_rate < UNKNOWN or given_tokenizer(config) is not None:
        return built
    of_bytes = config.model_copy(update={"tokenizer": with_bytes(whole).tokenizer})
    rebuilt = _build(of_bytes, folder / "bytes", sources, share=share)
    return replace(rebuilt, unk_rate_before=built.unk_rate)


def with_bytes(config: PretrainConfig) -> PretrainConfig:
    """The config with a vocabulary of bytes, and the size for it."""
    of_bytes = update_sections(config, {"tokenizer": {"kind": "byte-bpe", "vocab_size": AUTO}})
    size = decided_config(of_bytes, _quiet).tokenizer.vocab_size
    return update_sections(of_bytes, {"tokenizer": {"vocab_size": size}})


def _build(config: PretrainConfig, folder: Path, sources: Sequence[Source], share: float) -> Prepared:
    """The store of `config` in `folder`, held out with the first fraction that gives two documents.

    `share`: of all of the text.
    """
    processes = num_processes(sources, num_local_ranks=1)
    for fraction in _FRACTIONS:
        keys: dict[str, Any] = {"heldout_fraction": fraction, "store": str(folder / f"store-{fraction}")}
        tried = update_sections(config, {"corpus": keys})
        tried = tried.model_copy(update={"output_dir": str(folder / "run")})
        begun = time.perf_counter()
        try:
            store = prepare_store(decided_config(tried, _quiet), _quiet, processes=processes)
        except UserError:
            if fraction == _FRACTIONS[-1]:
                raise
            continue
        took = time.perf_counter() - begun
        tokens = store.manifest.train.tokens / share, store.manifest.heldout.tokens / share
        return Prepared(tried, took, *tokens, heldout_fraction=fraction, unk_rate=store.manifest.unk_rate)
    raise AssertionError("unreachable: the last fraction raises")


def _quiet(line: str) -> None:
    """What a run says of its own."""


def _usual_fraction(amount: Amount) -> float:
    return 0.05 if amount.documents >= 1000 else 0.1 if not 40 <= amount.documents < 200 else 0.2
