"""Chunks of text -> sentences -> token ids, on all cores, in order."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.corpus.chunks import Chunk
from bertcli.corpus.documents import count_words, split_sentences
from bertcli.corpus.token_store import ids_dtype
from bertcli.system.processes import in_processes
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.tokenizer.word_cache import WordCache, sums


@dataclass(frozen=True)
class EncodedChunk:
    """The token ids of a chunk, without sentences that have no token.

    Attributes:
        ids: uint16 or uint32 [tokens].
        lengths: uint32 [S]; the number of tokens of each sentence.
        piece_sentences, piece_dropped, piece_words: int64 [P]; the numbers of sentences kept, of sentences
            left out, and of words in each piece of the chunk.
    """

    ids: NDArray[Any]
    lengths: NDArray[np.uint32]
    piece_sentences: NDArray[np.int64]
    piece_dropped: NDArray[np.int64]
    piece_words: NDArray[np.int64]


def encode_chunk(
    cache: WordCache, language: str | None, paragraphs: list[str], starts: list[int], dtype: np.dtype[Any]
) -> EncodedChunk:
    """Split the text of a chunk into sentences and tokenize it; if `language` is None, paragraphs are
    sentences."""
    sentences: list[str] = []
    bounds: list[int] = []
    words: list[int] = []
    for start, end in itertools.pairwise([*starts, len(paragraphs)]):
        bounds.append(len(sentences))
        words.append(count_words(paragraphs[start:end]))
        if language is None:
            sentences += _after_blanks(paragraphs[start:end], cache.tokenizer)
        else:
            for paragraph in paragraphs[start:end]:
                sentences += _after_blanks(split_sentences(paragraph, language), cache.tokenizer)
    ends = np.array([*bounds, len(sentences)])
    encoded = cache.encode(sentences)
    is_kept = encoded.lengths > 0
    kept = sums(is_kept, ends)
    return EncodedChunk(
        ids=encoded.ids.astype(dtype),
        lengths=encoded.lengths[is_kept],
        piece_sentences=kept,
        piece_dropped=np.diff(ends) - kept,
        piece_words=np.array(words, np.int64),
    )


def _after_blanks(sentences: list[str], tokenizer: Tokenizer) -> list[str]:
    """The sentences of a text; all but the first get a blank in front if the tokenizer marks blanks."""
    if not tokenizer.marks_blanks:
        return sentences
    return [*sentences[:1], *(f" {sentence}" for sentence in sentences[1:])]


def encode_here(
    chunks: Iterable[Chunk], tokenizer: Tokenizer, language: str | None
) -> Iterator[tuple[Chunk, EncodedChunk]]:
    """Encode chunks in this process, which is faster for a small corpus."""
    cache, dtype = WordCache(tokenizer), ids_dtype(tokenizer.vocab_size)
    for chunk in chunks:
        yield chunk, encode_chunk(cache, language, chunk.paragraphs, starts=chunk.starts, dtype=dtype)


def encode_in_processes(
    chunks: Iterable[Chunk], folder: Path, language: str | None, processes: int
) -> Iterator[tuple[Chunk, EncodedChunk]]:
    """Encode chunks, in the order of `encode_here`, in `processes` with the tokenizer of `folder`.

    Each process has one thread. Raises `UserError` if a process dies.
    """
    return in_processes(
        chunks,
        lambda chunk: (chunk.paragraphs, chunk.starts),
        _encoder,
        given=(folder, language),
        processes=processes,
        died="a process that tokenizes died, perhaps because memory ran out; run the command again: it "
        "resumes from here",
    )


def _encoder(folder: Path, language: str | None) -> Callable[[list[str], list[int]], EncodedChunk]:
    tokenizer = Tokenizer.load(folder)
    cache, dtype = WordCache(tokenizer), ids_dtype(tokenizer.vocab_size)
    return lambda paragraphs, starts: encode_chunk(cache, language, paragraphs, starts=starts, dtype=dtype)
