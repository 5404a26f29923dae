"""Chunks of text -> sentences -> token ids, on all cores, in order."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import UserError
from bertcli.store.chunks import Chunk
from bertcli.store.token_store import ids_dtype
from bertcli.text.sentences import split_sentences
from bertcli.text.tokenizer import Tokenizer
from bertcli.text.word_cache import WordCache


@dataclass(frozen=True)
class EncodedChunk:
    """The token ids of a chunk; sentences that give no token are left out.

    Attributes:
        ids: uint16 or uint32 [tokens].
        lengths: uint32 [S]; tokens of each sentence.
        piece_sentences, piece_dropped, piece_words: int64 [P]; sentences kept, sentences left out, and
            words of each piece of the chunk.
    """

    ids: NDArray[Any]
    lengths: NDArray[np.uint32]
    piece_sentences: NDArray[np.int64]
    piece_dropped: NDArray[np.int64]
    piece_words: NDArray[np.int64]


def encode_chunk(
    cache: WordCache, language: str | None, paragraphs: list[str], starts: list[int], dtype: np.dtype[Any]
) -> EncodedChunk:
    """Split (unless `language` is None: paragraphs are sentences) and tokenise the text of a chunk."""
    sentences: list[str] = []
    bounds = []
    for start, end in itertools.pairwise([*starts, len(paragraphs)]):
        bounds.append(len(sentences))
        for paragraph in paragraphs[start:end]:
            sentences += [paragraph] if language is None else split_sentences(paragraph, language)
    bounds = np.array([*bounds, len(sentences)])
    encoded = cache.encode(sentences)
    is_kept = encoded.lengths > 0
    kept, words = (_cumulative(values)[bounds] for values in (is_kept, encoded.words))
    return EncodedChunk(
        ids=encoded.ids.astype(dtype),
        lengths=encoded.lengths[is_kept],
        piece_sentences=np.diff(kept),
        piece_dropped=np.diff(bounds) - np.diff(kept),
        piece_words=np.diff(words),
    )


def _cumulative(values: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(values)])


def encode_here(
    chunks: Iterable[Chunk], tokenizer: Tokenizer, language: str | None
) -> Iterator[tuple[Chunk, EncodedChunk]]:
    """In this process: for a corpus that is soon done."""
    cache, dtype = WordCache(tokenizer), ids_dtype(tokenizer.vocab_size)
    for chunk in chunks:
        yield chunk, encode_chunk(cache, language, chunk.paragraphs, chunk.starts, dtype)


def encode_in_processes(
    chunks: Iterable[Chunk], folder: Path, language: str | None, processes: int
) -> Iterator[tuple[Chunk, EncodedChunk]]:
    """In `processes` of one thread each, with the tokenizer of `folder`; the same, and in the same order.

    What is in flight is bounded by the number of processes. They are spawned, not forked: this process
    may hold threads. Raises `UserError` where one of them dies.
    """
    context = multiprocessing.get_context("spawn")
    in_flight: deque[tuple[Chunk, Future[EncodedChunk]]] = deque()
    pool = ProcessPoolExecutor(processes, context, _start_worker, (folder, language))
    try:
        for chunk in chunks:
            in_flight.append((chunk, pool.submit(_encode_in_worker, chunk.paragraphs, chunk.starts)))
            if len(in_flight) > 2 * processes:
                done, future = in_flight.popleft()
                yield done, future.result()
        while in_flight:
            done, future = in_flight.popleft()
            yield done, future.result()
    except BrokenProcessPool:
        raise UserError(
            "a process that tokenises died, perhaps for want of memory; run the command again: it goes on "
            "from here"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_worker: tuple[WordCache, str | None, np.dtype[Any]]


def _start_worker(folder: Path, language: str | None) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C, and stops the pool
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    threading.Thread(target=_die_with_parent, daemon=True).start()
    tokenizer = Tokenizer.load(folder)
    _worker = WordCache(tokenizer), language, ids_dtype(tokenizer.vocab_size)


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _encode_in_worker(paragraphs: list[str], starts: list[int]) -> EncodedChunk:
    cache, language, dtype = _worker
    return encode_chunk(cache, language, paragraphs, starts, dtype)
