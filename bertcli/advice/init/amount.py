"""How much text a corpus has: counted, or of a large one estimated from a part."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertcli.config.schema import CorpusConfig, PretrainConfig
from bertcli.config.section import AUTO
from bertcli.corpus.build import num_processes, prepare_store
from bertcli.corpus.documents import count_words, read_paragraphs, split_sentences
from bertcli.corpus.finish import UNKNOWN
from bertcli.corpus.matching import given_tokenizer
from bertcli.corpus.sample import FEW_BLANKS, text_bytes
from bertcli.corpus.sources import Source
from bertcli.system.errors import UserError
from bertcli.tokenizer.wordpiece import unread
from bertcli.training.recipe import decided_config, update_sections

COUNTED_BYTES = 64 << 20
"""Of text that is read to count it."""
_SPLIT_DOCUMENTS = 400
"""Documents that are split into sentences."""


@dataclass(frozen=True)
class Amount:
    """The text of a corpus.

    Attributes:
        text_bytes: of UTF-8, without blank lines.
        words: between white space; 0 in a script without blanks.
        is_exact: all of it was read.
        one_sentence: share of the documents that have a single sentence.
        unread: share of the characters that are in words too long for a WordPiece.
    """

    files: int
    text_bytes: float
    documents: float
    words: float
    is_exact: bool
    one_sentence: float
    unread: float = 0.0

    def line(self) -> str:
        """In words."""
        about = "" if self.is_exact else "about "
        words = f", {about}{self.words:,.0f} words" if self.words else ""
        files, documents = _number(self.files, "file"), _number(round(self.documents), "document")
        return f"{files}, {about}{self.text_bytes / 1e6:,.1f} MB of text, {about}{documents}{words}"


def measure_amount(sources: Sequence[Source], corpus: CorpusConfig) -> Amount:
    """Read the text, of a large corpus about `COUNTED_BYTES`, of evenly chosen files.

    Raises `UserError` for files without text, and what cannot be read.
    """
    size = text_bytes(sources)
    is_exact = size < 2 * COUNTED_BYTES
    chosen = sources if is_exact else sources[:: min(len(sources), math.ceil(size / COUNTED_BYTES))]
    limit = math.inf if is_exact else 2 * COUNTED_BYTES / len(chosen)
    tally, on_disk = _Tally(), [0]

    def advance(read: int) -> None:
        on_disk[0] += read

    for source in chosen:
        own = 0
        for paragraph in read_paragraphs(source.path, corpus, advance):
            if paragraph is None:
                tally.end_document()
                continue
            own += tally.add(paragraph, corpus)
            if own > limit:
                break
    if not tally.size:
        raise UserError("the files hold no text")
    all_bytes = sum(source.path.stat().st_size for source in sources)
    is_file = corpus.format == "text" and corpus.document == "file"
    scale = 1.0 if is_exact else all_bytes / max(1, min(all_bytes, on_disk[0]))
    return Amount(
        len(sources),
        text_bytes=scale * tally.size,
        documents=len(sources) if is_file and not is_exact else scale * max(1, tally.documents),
        words=scale * tally.words if tally.blanks >= FEW_BLANKS * tally.characters else 0,
        is_exact=is_exact,
        one_sentence=tally.single / max(1, min(tally.documents, _SPLIT_DOCUMENTS)),
        unread=tally.unread / max(1, tally.characters),
    )


class _Tally:
    """Counts of text, and the share of documents of one sentence among the first."""

    def __init__(self) -> None:
        self.size = self.documents = self.words = self.blanks = self.characters = self.single = 0
        self.unread = self._sentences = 0

    def add(self, paragraph: str, corpus: CorpusConfig) -> int:
        """Count a paragraph; returns its bytes."""
        size = len(paragraph.encode()) + 1
        self.size += size
        self.words += count_words([paragraph])
        self.blanks += paragraph.count(" ")
        self.characters += len(paragraph)
        self.unread += unread(paragraph)
        if self.documents < _SPLIT_DOCUMENTS and self._sentences < 2:
            is_one = corpus.format == "sentences"
            self._sentences += 1 if is_one else len(split_sentences(paragraph, corpus.language))
        return size

    def end_document(self) -> None:
        """Count a document."""
        self.single += self.documents < _SPLIT_DOCUMENTS and self._sentences == 1
        self.documents += 1
        self._sentences = 0


def write_sample(sources: Sequence[Source], corpus: CorpusConfig, num_bytes: float, path: Path) -> int:
    """Write about `num_bytes` of the text, evenly from the files, as a text file whose blank lines end
    documents; returns the bytes."""
    written = 0
    with open(path, "w", encoding="utf-8") as file:
        for line in _sample(sources, corpus, num_bytes / len(sources)):
            file.write(f"{line}\n")
            written += len(line.encode()) + 1
    return written


def _sample(sources: Sequence[Source], corpus: CorpusConfig, of_each: float) -> Iterator[str]:
    for source in sources:
        left = of_each
        for paragraph in read_paragraphs(source.path, corpus):
            yield paragraph or ""
            left -= len((paragraph or "").encode()) + 1
            if left <= 0:
                break
        yield ""


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


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
