"""The end of a store's build: counts, hashes, and checks that the vocabulary fits the text."""

import itertools
import math
import os
import random
import shutil
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.config.schema import PretrainConfig
from bertcli.corpus.blocks import BLOCK_BYTES, HASH_BYTES, SUFFIX, block_hash, num_blocks
from bertcli.corpus.manifest import FileRecord, Manifest, SideCounts, StoredSource, rebuild
from bertcli.corpus.matching import given_tokenizer
from bertcli.corpus.token_store import HASHES, NAMES, SIDES, OpenStore, ids_dtype
from bertcli.corpus.writer import BuildProgress
from bertcli.system.errors import UserError
from bertcli.system.files import file_hash, flush_to_disk, open_plain
from bertcli.system.terminal import Report, counted
from bertcli.tokenizer.tokenizer import Tokenizer

ARRAYS = tuple(f"{side}/{name}.bin" for side in SIDES for name in NAMES)
FULL_BYTES = 2 * 10**9
"""The most bytes of arrays that are always compared in full, which takes a second or two."""
DRAWN_BLOCKS = 1000
_AT_ONCE = 64
"""Blocks that a thread checks in one piece of work."""


def gather_hashes(folder: Path) -> str:
    """Write `hashes.bin` from the files that `HashedFile` left. Return its own hash, hexadecimal."""
    path = folder / HASHES
    with open(path, "wb") as gathered:
        for name in ARRAYS:
            with open((folder / name).with_suffix(SUFFIX), "rb") as part:
                shutil.copyfileobj(part, gathered)
        flush_to_disk(gathered)
    return file_hash(path, "blake2b")


def drop_gathered(folder: Path) -> None:
    """Remove the files that `gather_hashes` read; a build needs them until it is finished."""
    for name in ARRAYS:
        (folder / name).with_suffix(SUFFIX).unlink(missing_ok=True)


def check_arrays(store: OpenStore, seed: int, report: Report, every_block: bool = False) -> None:
    """Compare all blocks of the arrays with their hashes, or 1,000 blocks drawn by `seed` beyond 2 GB.

    Args:
        every_block: compare all blocks at any size.
        report: takes a line if blocks are drawn; with `every_block`, lines on what is read.

    Raises:
        UserError: a block cannot be read or does not match its hash, or `hashes.bin` is damaged.
    """
    sizes = [store.manifest.arrays[name] for name in ARRAYS]
    blocks, size = sum(map(num_blocks, sizes)), sum(sizes)
    if every_block:
        report(f"reading all of {store.folder}: {size / 1e6:,.1f} MB in {blocks:,} blocks")
    if every_block or size <= FULL_BYTES:
        numbers: Sequence[int] = range(blocks)
        if file_hash(store.folder / HASHES, "blake2b") != store.manifest.hashes:
            raise UserError(
                f"{store.folder / HASHES}: damaged: it is not what was written. {rebuild(store.folder)}"
            )
    else:
        numbers = sorted(random.Random(seed).sample(range(blocks), min(DRAWN_BLOCKS, blocks)))
        report(
            f"{store.folder}: comparing {len(numbers):,} of {blocks:,} blocks, drawn by the seed, with their "
            "hashes; bertcli prepare CONFIG --verify compares all"
        )
    wrong = _wrong_blocks(store.folder, sizes, numbers)
    if wrong:
        more = f", nor are {len(wrong) - 1:,} other blocks" if len(wrong) > 1 else ""
        raise UserError(f"{wrong[0]} is not what was written{more}. {rebuild(store.folder)}")
    if every_block:
        report("every block is what was written")


def _wrong_blocks(folder: Path, sizes: Sequence[int], numbers: Sequence[int]) -> list[str]:
    """The places of the damaged blocks among `numbers`; the numbers run on from array to array."""
    starts = [0, *itertools.accumulate(map(num_blocks, sizes))]
    with open_plain(folder / HASHES) as hashes:

        def check(some: Sequence[int]) -> list[str]:
            return [place for number in some if (place := compare(number)) is not None]

        def compare(number: int) -> str | None:
            array = bisect_right(starts, number) - 1
            path, offset = folder / ARRAYS[array], (number - starts[array]) * BLOCK_BYTES
            written = os.pread(hashes.fileno(), HASH_BYTES, number * HASH_BYTES)
            place = f"{path}: damaged: byte {offset:,} to {min(offset + BLOCK_BYTES, sizes[array]):,}"
            try:
                with open_plain(path) as file:
                    file.seek(offset)
                    return None if block_hash(file.read(BLOCK_BYTES)) == written else place
            except OSError as error:
                return f"{place} ({(error.strerror or 'cannot be read').lower()})"

        parts = [numbers[i : i + _AT_ONCE] for i in range(0, len(numbers), _AT_ONCE)]
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            return list(itertools.chain.from_iterable(threads.map(check, parts)))


UNKNOWN, MOST_UNKNOWN = 0.01, 0.2
"""Shares of unknown tokens: above the first there is a warning, from the second on a store is refused."""
PIECES = 2.5
"""Tokens per word above which there is a warning; a vocabulary made for the text gives 1.2 to 2."""
_NO_BLANKS = 40
"""Bytes per word from which a script has no blanks between words, so that tokens per word mean nothing."""
_ANY_TEXT = "set tokenizer.kind: byte-bpe, a kind of vocabulary that reads any text"


def misfits(config: PretrainConfig, manifest: Manifest) -> Iterator[str]:
    """The signs that the config's vocabulary was made for other text than the store's; none if it fits."""
    if manifest.unk_rate > UNKNOWN:
        yield f"{unknown(manifest.unk_rate)}. To read them, {known_by(config)}; bertcli check-data says more"
    if (vocabulary := given_tokenizer(config)) is None:
        return
    has_blanks = manifest.text.bytes < _NO_BLANKS * max(1, manifest.text.words)
    if manifest.tokens_per_word > PIECES and has_blanks:
        yield (
            f"a word is cut into {manifest.tokens_per_word:.2f} pieces: the vocabulary of {vocabulary} was "
            "made for other text; rows hold more of it with one that is trained on this text (without "
            "tokenizer.path and model.init_from)"
        )


def check_known(config: PretrainConfig, unk_rate: float) -> None:
    """Raise `UserError` if too many tokens of a store are unknown to learn anything from it."""
    if unk_rate >= MOST_UNKNOWN:
        raise UserError(
            f"{unknown(unk_rate)}. A model would learn next to nothing; {known_by(config)}. "
            "If the store exists already, build it again then: bertcli prepare CONFIG --overwrite"
        )


def unknown(rate: float) -> str:
    """The words for a share of unknown tokens and its cause."""
    return (
        f"{rate:.1%} of the tokens are unknown: the vocabulary lacks their characters, or words are "
        "too long for WordPiece (over 100 characters)"
    )


def known_by(config: PretrainConfig) -> str:
    """The change to the config that leaves no token unknown, in words."""
    if config.model.init_from is not None:
        return f"leave model.init_from out, and {_ANY_TEXT}: a new model; or name a model for such text"
    if config.tokenizer.path is not None:
        return f"leave tokenizer.path out, and {_ANY_TEXT}"
    if config.distillation is not None:
        return f"leave distillation out, and {_ANY_TEXT}; or name a teacher for such text"
    return _ANY_TEXT


BLOCK = 1 << 22
"""The number of ids counted at once."""
WITHOUT = "set it to 0 to train without evaluation"


def check_heldout(progress: BuildProgress, fraction: float) -> None:
    """Raise `UserError` if no text is left to train on, or if too little is held out for sentence pairs."""
    train, heldout = progress.side("train").documents, progress.side("heldout").documents
    cut = sum(source.cut_documents for source in progress.sources)
    stored = sum(source.cut_documents or source.text.documents for source in progress.sources)
    if stored == 0:
        raise UserError(
            "the corpus holds no text: no document gave a token; name files that do in corpus.files"
        )
    documents = counted(stored, "document")
    if fraction > 0.0 and heldout < 2:
        unit = " runs of sentences" if cut else ""
        mend = f"Give more text, or {WITHOUT}" if cut else _enough(progress)
        raise UserError(
            f"corpus.heldout_fraction: {fraction:g} of {documents} holds out {heldout}{unit}; "
            f"evaluation needs two or more. {mend}"
        )
    if train == 0:
        raise UserError(
            f"corpus.heldout_fraction: {fraction:g} holds out all of {documents}; lower it to train on "
            f"some, give more text, or {WITHOUT}"
        )


def heldout_lines(progress: BuildProgress, names: Sequence[str]) -> Iterator[str]:
    """A line for the user about each source of few documents that was cut."""
    for name, source in zip(names, progress.sources, strict=True):
        if source.cut_documents:
            runs, documents = source.sides["heldout"].documents, counted(source.cut_documents, "document")
            which = "the corpus" if len(names) == 1 else f"the source {name}"
            yield f"held out: {runs:,} runs of sentences, because {which} has only {documents}"


def _enough(progress: BuildProgress) -> str:
    # The second smallest hash as a fraction, rounded up to three digits.
    smallest = sorted(number for source in progress.sources for number in source.smallest_hashes)
    enough = math.ceil(smallest[1] / 2**64 * 1000 + 1e-9) / 1000
    return f"Raise it to {enough:g}, give more documents (see corpus.document), or {WITHOUT}"


def count_store(
    folder: Path,
    tokenizer: Tokenizer,
    progress: BuildProgress,
    options: dict[str, Any],
    files: Mapping[str, Sequence[FileRecord]],
) -> Manifest:
    """The manifest of the arrays in `folder`. The ids are read once, one block at a time.

    `files`: the name of each source -> its files.
    """
    train_uses, heldout_uses = (
        _count_ids(folder, side, tokenizer.vocab_size, progress=progress) for side in SIDES
    )
    unknown = tokenizer.unk_id
    sources = [
        StoredSource(
            name=name,
            files=tuple(own),
            pieces={side: tuple(numbers) for side, numbers in source.pieces.items()},
            train=source.sides["train"] + SideCounts(unk_tokens=int(train[unknown])),
            heldout=source.sides["heldout"] + SideCounts(unk_tokens=int(heldout[unknown])),
            dropped_documents=source.dropped_documents,
            dropped_sentences=source.dropped_sentences,
            unigram_entropy=unigram_entropy(train),
        )
        for (name, own), source, train, heldout in zip(
            files.items(), progress.sources, train_uses, heldout_uses, strict=True
        )
    ]
    return Manifest(
        vocab_size=tokenizer.vocab_size,
        tokenizer_hash=tokenizer.hash,
        options=options,
        sources=tuple(sources),
        arrays={array: (folder / array).stat().st_size for array in ARRAYS},
        hashes=gather_hashes(folder),
        unigram_entropy=unigram_entropy(train_uses.sum(axis=0)),
    )


def unigram_entropy(uses: NDArray[np.int64]) -> float:
    """The entropy, in nats, of a token drawn by its share of `uses` [V]; 0 if all uses are 0."""
    seen = uses[uses > 0]
    shares = seen / max(1, seen.sum())
    return float(-(shares * np.log(shares)).sum())


def _count_ids(folder: Path, side: str, vocab_size: int, progress: BuildProgress) -> NDArray[np.int64]:
    """How often each token occurs on a side of each source, int64 [sources, V]."""
    uses = np.zeros((len(progress.sources), vocab_size), np.int64)
    dtype = ids_dtype(vocab_size)
    with open(folder / side / "ids.bin", "rb") as file:
        for number, source in enumerate(progress.sources):
            tokens = source.sides[side].tokens
            for done in range(0, tokens, BLOCK):
                block = np.fromfile(file, dtype, min(BLOCK, tokens - done))
                uses[number] += np.bincount(block, minlength=vocab_size)
    return uses
