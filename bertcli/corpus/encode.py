"""Chunks of text -> sentences -> token ids, on all cores, in order."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertcli.config.corpus import CorpusConfig
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


class ChunkEncoder:
    """Splits the text of chunks into sentences and tokenizes them."""

    def __init__(self, tokenizer: Tokenizer | Path, corpus: CorpusConfig):
        """`tokenizer`: also its folder."""
        tokenizer = Tokenizer.load(tokenizer) if isinstance(tokenizer, Path) else tokenizer
        self._cache = WordCache(tokenizer)
        self.corpus = corpus
        self._corpora = corpus.alone
        self._dtype = ids_dtype(tokenizer.vocab_size)

    def __call__(
        self, source: int, paragraphs: list[str], starts: list[int], goes_on: bool = False
    ) -> EncodedChunk:
        """Encode what a `Chunk` holds."""
        corpus = self._corpora[source]
        sentences: list[str] = []
        bounds: list[int] = []
        words: list[int] = []
        for start, end in itertools.pairwise([*starts, len(paragraphs)]):
            bounds.append(len(sentences))
            words.append(count_words(paragraphs[start:end]))
            if corpus.format == "sentences":
                follows = goes_on and start == 0
                sentences += self._after_blanks(paragraphs[start:end], follows)
            else:
                for paragraph in paragraphs[start:end]:
                    sentences += self._after_blanks(split_sentences(paragraph, corpus.language))
        ends = np.array([*bounds, len(sentences)])
        encoded = self._cache.encode(sentences)
        is_kept = encoded.lengths > 0
        kept = sums(is_kept, ends)
        return EncodedChunk(
            ids=encoded.ids.astype(self._dtype),
            lengths=encoded.lengths[is_kept],
            piece_sentences=kept,
            piece_dropped=np.diff(ends) - kept,
            piece_words=np.array(words, np.int64),
        )

    def _after_blanks(self, sentences: list[str], follows: bool = False) -> list[str]:
        """The sentences of a text; if the tokenizer marks blanks, all but the first get a blank in front.

        `follows`: the first one does too, because text stands before it.
        """
        if not self._cache.tokenizer.marks_blanks:
            return sentences
        first = 0 if follows else 1
        return [*sentences[:first], *(f" {sentence}" for sentence in sentences[first:])]


def encode_chunks(
    chunks: Iterable[Chunk], encoder: ChunkEncoder, folder: Path, processes: int
) -> Iterator[tuple[Chunk, EncodedChunk]]:
    """Encode chunks, in order, in `processes` of one thread each; 0 is this process, faster for few chunks.

    `folder` holds the tokenizer. Raises `UserError` if a process dies.
    """
    return in_processes(
        chunks,
        lambda chunk: (chunk.source, chunk.paragraphs, chunk.starts, chunk.goes_on),
        ChunkEncoder if processes else lambda: encoder,
        given=(folder, encoder.corpus) if processes else (),
        processes=processes,
        died="a process that tokenizes died, perhaps because memory ran out; run the command again: it "
        "resumes from here",
    )
