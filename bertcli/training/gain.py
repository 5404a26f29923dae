"""The effect of further pretraining: what the model gained on the run's text and forgot of general text."""

import hashlib
import tempfile
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from bertcli.batches.share import Share
from bertcli.config.schema import CorpusConfig
from bertcli.corpus.documents import read_paragraphs
from bertcli.corpus.sources import find_sources
from bertcli.corpus.token_store import OpenStore, TokenStore
from bertcli.model.pretraining import PretrainingModel
from bertcli.objectives.masked_language import MaskedLanguage
from bertcli.objectives.registry import MLM
from bertcli.system.errors import UserError
from bertcli.system.hardware import Precision
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training import ranks
from bertcli.training.evaluate import evaluate
from bertcli.training.heldout import HeldoutBatches, as_in_bert, text_store

BUNDLED = ["classics"]
"""The general text, unless the config names another."""
GENERAL_BYTES = 500_000
"""Approximate size of the general text that is read: whole documents, chosen by their hash."""


@dataclass(frozen=True)
class Gain:
    """The loss on a text in nats per word, before and after a run.

    It is the loss of a masked token times the tokens per word, so models with different vocabularies can be
    compared.

    Attributes:
        text: the name of the text.
        before: the loss of the model that the run started from; None: it had no MLM head.
        after: the loss of the trained model.
    """

    text: str
    before: float | None
    after: float

    def __str__(self) -> str:
        if self.before is None:
            return f"{self.text}: {self.after:.3f} nats a word (the model before had no MLM head)"
        change = self.before - self.after
        word = "better" if change >= 0 else "worse"
        return f"{self.text}: {self.before:.3f} -> {self.after:.3f} nats a word, {abs(change):.3f} {word}"


@dataclass(frozen=True)
class Meter:
    """The settings to measure models on a text. `batches`: the largest number of batches."""

    tokenizer: Tokenizer
    max_length: int
    batch_size: int
    batches: int
    share: Share
    device: torch.device
    precision: Precision

    def nats_per_word(self, model: PretrainingModel, text: TokenStore, tokens_per_word: float) -> float:
        """The MLM loss of a model on a text, in nats per word, over all ranks; every rank must call it."""
        data = as_in_bert(MLM, self.max_length)
        heldout = HeldoutBatches(text, self.tokenizer, data, batch_size=self.batch_size, at_most=self.batches)
        scores = evaluate(
            model=model.to(self.device),
            task=MaskedLanguage(MLM.pairs),
            steps=heldout.steps(self.share),
            device=self.device,
            precision=self.precision,
        )
        (loss,) = scores.losses.values()
        return loss * tokens_per_word


def gain_on_general(
    meter: Meter,
    before: PretrainingModel | None,
    after: PretrainingModel,
    folder: Path,
    corpus: CorpusConfig,
) -> Gain:
    """The gain on the general text of `corpus`; `folder` holds the tokenizer.

    Raises:
        UserError: the text cannot be read.
    """
    names = corpus.general or BUNDLED
    reading = corpus if corpus.general else CorpusConfig(files=BUNDLED)
    with tempfile.TemporaryDirectory() as scratch:
        sample, run = Path(scratch) / "general.txt", str(Path(scratch) / "run")

        def build() -> OpenStore:
            try:
                sample.write_text("\n\n".join(_documents(names, reading)), encoding="utf-8")
            except OSError as error:
                raise UserError(f"{sample}: could not be written: {error.strerror}") from None
            given = {"files": [str(sample)], "language": corpus.language}
            return text_store(folder, given, run, report=lambda line: None)

        store = ranks.on_all(build)
        text, ratio = store.train, store.manifest.tokens_per_word
        first = None if before is None else meter.nats_per_word(before, text, ratio)
        return Gain(f"general text ({', '.join(names)})", first, meter.nats_per_word(after, text, ratio))


def _documents(names: Sequence[str], reading: CorpusConfig) -> list[str]:
    """Documents of about `GENERAL_BYTES` together, read as `reading` says; memory holds no more."""
    kept: list[tuple[bytes, str]] = []
    total = 0
    for document in _all_documents(names, reading):
        text = document.encode()
        insort(kept, (hashlib.blake2b(text).digest(), document))
        total += len(text)
        while total - (last := len(kept[-1][1].encode())) >= GENERAL_BYTES:
            kept.pop()
            total -= last
    return [document for _, document in kept]


def _all_documents(names: Sequence[str], reading: CorpusConfig) -> Iterator[str]:
    paragraphs: list[str] = []
    for source in find_sources(names):
        for paragraph in read_paragraphs(source.path, reading):
            if paragraph is not None:
                paragraphs.append(paragraph)
            else:
                yield "\n".join(paragraphs)
                paragraphs = []
