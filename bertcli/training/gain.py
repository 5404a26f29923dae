"""What is measured at the end of a pretraining: what the model gained on the run's text and forgot of general
text, if it went on from another one; and its loss without the enhanced mask decoder."""

import hashlib
import tempfile
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from torch import Tensor

from bertcli.batches.share import Share
from bertcli.config.corpus import CorpusConfig
from bertcli.config.run import DecidedPretraining
from bertcli.corpus.documents import read_paragraphs
from bertcli.corpus.files import list_files
from bertcli.corpus.token_store import OpenStore, TokenStore
from bertcli.model.pretraining import LanguageModel, PretrainingModel
from bertcli.objectives.learner import learner_of, words_alone
from bertcli.objectives.masked_language import MaskedLanguage
from bertcli.objectives.registry import MLM
from bertcli.system.errors import UserError
from bertcli.training import ranks
from bertcli.training.heldout import HeldoutBatches, as_in_bert, text_store
from bertcli.training.loop import LoopSettings
from bertcli.training.scores import evaluate

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
    """What measures models on a text: the vocabulary, the sizes and the machine of a run."""

    config: DecidedPretraining
    store: OpenStore
    share: Share
    loop: LoopSettings

    def nats_per_word(self, model: PretrainingModel, text: TokenStore, tokens_per_word: float) -> float:
        """The MLM loss of a model on a text, in nats per word, over all ranks; every rank must call it."""
        config, device = self.config, self.loop.device
        task = MaskedLanguage(MLM.pairs)
        data = as_in_bert(MLM, config.data.max_length)
        size, most = config.training.largest_batch, config.evaluation.batches
        heldout = HeldoutBatches(text, self.store.tokenizer, data, batch_size=size, at_most=most)
        steps = heldout.steps(self.share)
        scores = evaluate(model.to(device), task, steps, device=device, precision=self.loop.precision)
        (loss,) = scores.losses.values()
        return loss * tokens_per_word


def closing_measurements(
    meter: Meter, source: Path | None, model: LanguageModel, weights: Mapping[str, Tensor]
) -> Iterator[str]:
    """Lines for the log and the model card; computed on every rank.

    Args:
        source: the folder from which the run started.
        weights: the full weights of `model`.
    """
    if source is None and model.words.mask_decoder is None:
        return
    store, config = meter.store, meter.config
    has_heldout = store.heldout.num_documents > 0
    after = words_alone(model, weights)
    if after.mask_decoder is not None and has_heldout:
        yield f"as transformers and predict-mask read the folder, {_without_decoder(after, meter)}"
    if source is None:
        return
    try:
        learner = learner_of(config.data.objective)
        before = ranks.on_all(lambda: learner.load_words(source, config.model))
        names = [f" of {name}" for name in config.corpus.source_names] if config.corpus.sources else [""]
        for name, text, counts in zip(names, store.heldout.sources, store.manifest.sources, strict=True):
            if text.num_documents:
                ratio = counts.text.tokens / max(1, counts.text.words)
                first = None if before is None else meter.nats_per_word(before, text, ratio)
                yield str(Gain(f"held-out text{name}", first, meter.nats_per_word(after, text, ratio)))
        yield str(_gain_on_general(meter, before, after, folder=source))
    except UserError as error:  # the trained model must not be lost for this error
        yield f"what was gained and forgotten is not measured: {error}"


def _without_decoder(model: PretrainingModel, meter: Meter) -> str:
    decoder, model.mask_decoder = model.mask_decoder, None
    loss = meter.nats_per_word(model, meter.store.heldout, 1.0)
    model.mask_decoder = decoder
    return f"without the enhanced mask decoder: held-out mlm {loss:.3f}"


def _gain_on_general(
    meter: Meter, before: PretrainingModel | None, after: PretrainingModel, folder: Path
) -> Gain:
    """The gain on the general text of the config; `folder` holds the tokenizer.

    Raises:
        UserError: the text cannot be read.
    """
    corpus = meter.config.corpus
    names = corpus.general or BUNDLED
    reading = corpus if corpus.general else CorpusConfig(files=BUNDLED)
    with tempfile.TemporaryDirectory() as scratch:
        sample, run = Path(scratch) / "general.txt", str(Path(scratch) / "run")

        def build() -> OpenStore:
            try:
                sample.write_text("\n\n".join(_documents(names, reading)), encoding="utf-8")
            except OSError as error:
                raise UserError(f"{sample}: could not be written: {error.strerror}") from None
            given = {"files": [str(sample)], "language": corpus.main_language}
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
    for file in list_files(names):
        # A document ends with None; its paragraphs are never empty.
        for is_text, paragraphs in groupby(read_paragraphs(file.path, reading), key=bool):
            if is_text:
                yield "\n".join(filter(None, paragraphs))
