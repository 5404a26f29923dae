"""The amount of text in a corpus, its vocabulary and its token store: measured, or estimated from a part."""

import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertcli.config.corpus import CorpusConfig
from bertcli.config.run import with_values
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import AUTO
from bertcli.corpus.build import num_processes, prepare_store
from bertcli.corpus.documents import count_words, read_paragraphs, split_sentences
from bertcli.corpus.files import CorpusFile
from bertcli.corpus.finish import UNKNOWN
from bertcli.corpus.matching import given_tokenizer
from bertcli.corpus.sample import FEW_BLANKS, text_bytes
from bertcli.corpus.writer import FEW_DOCUMENTS
from bertcli.system.errors import UserError
from bertcli.system.terminal import counted
from bertcli.tokenizer.wordpiece import unread
from bertcli.training.recipe import decide_recipe

COUNTED_BYTES = 64 << 20
"""Size of the part that is read to estimate a large corpus."""
_MOST_FILES = 50
"""Largest number of files that a config names one by one."""
_SPLIT_DOCUMENTS = 400
"""Number of documents that are split into sentences."""


@dataclass(frozen=True)
class Amount:
    """The text of a corpus.

    Attributes:
        text_bytes: size in UTF-8, without blank lines.
        words: number of words between white space; 0 in a script without blanks.
        is_exact: True if all of the text was read.
        one_sentence: share of the documents that have a single sentence.
        unread: share of the characters that are in words too long for WordPiece.
    """

    files: int
    text_bytes: float
    documents: float
    words: float
    is_exact: bool
    one_sentence: float
    unread: float = 0.0

    def line(self) -> str:
        """The amount in words."""
        about = "" if self.is_exact else "about "
        words = f", {about}{self.words:,.0f} words" if self.words else ""
        files, documents = counted(self.files, "file"), counted(round(self.documents), "document")
        return f"{files}, {about}{self.text_bytes / 1e6:,.1f} MB of text, {about}{documents}{words}"


def measure_amount(files: Sequence[CorpusFile], corpus: CorpusConfig) -> Amount:
    """Read the text; of a large corpus, only about `COUNTED_BYTES` from evenly chosen files.

    Raises `UserError` for files without text, and for files that cannot be read.
    """
    size = text_bytes(files)
    is_exact = size < 2 * COUNTED_BYTES
    chosen = files if is_exact else files[:: min(len(files), math.ceil(size / COUNTED_BYTES))]
    limit = math.inf if is_exact else 2 * COUNTED_BYTES / len(chosen)
    tally = _Tally()
    for file in chosen:
        end = tally.size + limit
        for paragraph in read_paragraphs(file.path, corpus.of(file.source), tally.advance):
            if paragraph is None:
                tally.end_document()
                continue
            tally.add(paragraph, corpus)
            if tally.size > end:
                break
    if not tally.size:
        raise UserError(
            f"{files[0].name}{' and the other files' * (len(files) > 1)}: no text was found; name files with "
            "text, or the right key of it (corpus.text_key)"
        )
    all_bytes = sum(file.size for file in files)
    is_file = corpus.format == "text" and corpus.document == "file"
    scale = 1.0 if is_exact else all_bytes / max(1, min(all_bytes, tally.on_disk))
    return Amount(
        len(files),
        text_bytes=scale * tally.size,
        documents=len(files) if is_file and not is_exact else scale * max(1, tally.documents),
        words=scale * tally.words if tally.blanks >= FEW_BLANKS * tally.characters else 0,
        is_exact=is_exact,
        one_sentence=tally.single / max(1, min(tally.documents, _SPLIT_DOCUMENTS)),
        unread=tally.unread / max(1, tally.characters),
    )


class _Tally:
    """The counts of a text, and the number of documents with one sentence among the first ones."""

    def __init__(self) -> None:
        self.size = self.documents = self.words = self.blanks = self.characters = self.single = 0
        self.unread = self.on_disk = self._sentences = 0

    def advance(self, read: int) -> None:
        """Count bytes that were read from the disk."""
        self.on_disk += read

    def add(self, paragraph: str, corpus: CorpusConfig) -> None:
        """Count a paragraph."""
        self.size += len(paragraph.encode()) + 1
        self.words += count_words([paragraph])
        self.blanks += paragraph.count(" ")
        self.characters += len(paragraph)
        self.unread += unread(paragraph)
        if self.documents < _SPLIT_DOCUMENTS and self._sentences < 2:
            is_one = corpus.format == "sentences"
            self._sentences += 1 if is_one else len(split_sentences(paragraph, corpus.language))

    def end_document(self) -> None:
        """Count a document."""
        self.single += self.documents < _SPLIT_DOCUMENTS and self._sentences == 1
        self.documents += 1
        self._sentences = 0


def that_fit(files: Sequence[CorpusFile], share: float) -> Sequence[CorpusFile]:
    """Evenly chosen files with at most this share of the bytes, but two or more; all files if the share is 1
    or more, or if a config cannot name so many."""
    kept, number = max(2, int(share * len(files))), len(files)
    if kept >= number or kept > _MOST_FILES:
        return files
    most = share * text_bytes(files)
    chosen = files
    while kept >= 2 and text_bytes(chosen) > most:
        chosen = [files[(2 * each + 1) * number // (2 * kept)] for each in range(kept)]
        kept -= 1
    return chosen


def write_sample(files: Sequence[CorpusFile], corpus: CorpusConfig, num_bytes: float, path: Path) -> int:
    """Write about `num_bytes` of the text, evenly from the files, to a text file; return the bytes.

    Blank lines in the file end documents.
    """
    with open(path, "wb") as sample:
        for file in files:
            end = sample.tell() + num_bytes / len(files)
            for paragraph in read_paragraphs(file.path, corpus.of(file.source)):
                sample.write(f"{paragraph or ''}\n".encode())
                if sample.tell() >= end:
                    break
            sample.write(b"\n")
        return sample.tell()


SAMPLES = (1_500_000, 5_000_000)
"""Bytes of two samples, whose vocabularies and stores show the time and size of those of the whole text."""
_FRACTION_BELOW = ((FEW_DOCUMENTS, 0.1), (200, 0.2), (1_000, 0.1))
"""Pairs (documents, held-out fraction for fewer). Below the first, runs of sentences are held out, so a tenth
is enough; few whole documents need a larger fraction. From the last on it is 0.05."""
_FRACTIONS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.0)
"""Values of `corpus.heldout_fraction`, tried until two documents are held out; the last holds out none."""


@dataclass(frozen=True)
class Prepared:
    """A vocabulary and a store, of the whole text or of a sample.

    Attributes:
        config: the config of the store.
        seconds: time for the whole text.
        tokens, heldout_tokens: number of training and held-out tokens in the whole text.
        heldout_fraction: the fraction that holds out two documents or more.
        unk_rate: share of the tokens that are unknown.
        unk_rate_before: the same with the usual kind of vocabulary, if that kind was rejected; else 0.
    """

    config: PretrainConfig
    seconds: float
    tokens: float
    heldout_tokens: float
    heldout_fraction: float
    unk_rate: float
    unk_rate_before: float = 0.0


@contextmanager
def prepared(config: PretrainConfig, files: Sequence[CorpusFile], amount: Amount) -> Iterator[Prepared]:
    """A context with vocabulary and store of a small text, or of two samples of a larger one.

    Their folder is deleted at the end.

    Args:
        config: the config, with `tokenizer.vocab_size` decided.

    Raises `UserError` for a text that gives no store.
    """
    with tempfile.TemporaryDirectory() as scratch:
        if amount.is_exact and amount.text_bytes <= SAMPLES[-1]:
            least = min(0.1, _fraction(amount.documents))  # more where it takes more
            yield _build_readable(config, config, Path(scratch), files=files, share=1.0, least=least)
            return
        corpus = config.corpus
        builds: list[tuple[int, Prepared]] = []
        for number, size in enumerate(SAMPLES):
            folder = Path(scratch) / str(number)
            folder.mkdir()
            written = write_sample(files, corpus, size, path=folder / "sample.txt")
            format = "sentences" if corpus.format == "sentences" else "text"
            keys = {"files": [str(folder / "sample.txt")], "format": format, "document": "blank-line"}
            keys |= {"join_lines": False, "encoding": "utf-8", "encodings": {}}
            sampled = with_values(config, {"corpus": keys})
            share = written / amount.text_bytes
            builds.append((written, _build_readable(sampled, config, folder, files=files, share=share)))
        (small, first), (large, last) = builds
        each = max((last.seconds - first.seconds) / max(1, large - small), last.seconds / large / 2)
        seconds = last.seconds + each * max(0.0, amount.text_bytes - large)
        fraction = _fraction(amount.documents)
        heldout_tokens = fraction * last.tokens
        yield replace(last, seconds=seconds, heldout_tokens=heldout_tokens, heldout_fraction=fraction)


def _fraction(documents: float) -> float:
    """The held-out fraction for so many documents."""
    return next((share for below, share in _FRACTION_BELOW if documents < below), 0.05)


def _build_readable(
    config: PretrainConfig,
    whole: PretrainConfig,
    folder: Path,
    files: Sequence[CorpusFile],
    share: float,
    least: float = 0.1,
) -> Prepared:
    """The result of `_build`; if tokens are unknown, that with a vocabulary of bytes, which reads any text.

    `whole`: the config of the whole text, which decides the size of the vocabulary.
    """
    built = _build(config, folder, files, share=share, least=least)
    if built.unk_rate < UNKNOWN or given_tokenizer(config) is not None:
        return built
    of_bytes = with_values(config, {"tokenizer": with_bytes(whole).tokenizer})
    rebuilt = _build(of_bytes, folder / "bytes", files, share=share, least=least)
    return replace(rebuilt, unk_rate_before=built.unk_rate)


def with_bytes(config: PretrainConfig) -> PretrainConfig:
    """The config with a vocabulary of bytes, and with the size for it."""
    of_bytes = with_values(config, {"tokenizer": {"kind": "byte-bpe", "vocab_size": AUTO}})
    size = decide_recipe(of_bytes, lambda line: None).tokenizer.vocab_size
    return with_values(of_bytes, {"tokenizer": {"vocab_size": size}})


def _build(
    config: PretrainConfig, folder: Path, files: Sequence[CorpusFile], share: float, least: float
) -> Prepared:
    """Build the store of `config` in `folder`; the first fraction that gives two documents is held out.

    `share`: the share of the whole text that `files` have; `least`: the smallest fraction to try.
    """
    processes = num_processes(files, num_local_ranks=1)
    for fraction in (each for each in _FRACTIONS if each >= least or not each):
        keys: dict[str, Any] = {"heldout_fraction": fraction, "store": str(folder / f"store-{fraction}")}
        tried = with_values(config, {"corpus": keys, "output_dir": str(folder / "run")})
        begun = time.perf_counter()
        try:
            recipe = decide_recipe(tried, lambda line: None)
            store = prepare_store(recipe, lambda line: None, processes=processes)
        except UserError:
            if fraction == _FRACTIONS[-1]:
                raise
            continue
        took = time.perf_counter() - begun
        tokens = store.manifest.train.tokens / share, store.manifest.heldout.tokens / share
        return Prepared(tried, took, *tokens, heldout_fraction=fraction, unk_rate=store.manifest.unk_rate)
    raise AssertionError("unreachable: the last fraction raises")
