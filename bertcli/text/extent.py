"""Corpus files -> estimates of the size of their text and of its alphabet, without reading all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from bertcli.config.schema import CorpusConfig
from bertcli.errors import UserError
from bertcli.text.corpus import read_paragraphs
from bertcli.text.sources import Source

COMPRESSION = 4
"""Approximate bytes of text for each byte of .gz, .zst or Parquet."""
_COMPRESSED = (".gz", ".zst", ".parquet")
_MOST_CHARACTERS = 4_000_000
"""Read in all files together."""
_MOST_FILES = 100
"""Approximate number of files that are read, evenly spaced."""
_COVERED = 0.999
"""Share of the text; rarer characters are stray signs of other scripts."""


def text_bytes(sources: Sequence[Source]) -> float:
    """Bytes of text, estimated by file size: compressed files count `COMPRESSION` times."""
    return float(
        sum(s.path.stat().st_size * (COMPRESSION if s.path.suffix in _COMPRESSED else 1) for s in sources)
    )


def count_characters(sources: Sequence[Source], corpus: CorpusConfig) -> tuple[int, int]:
    """The smallest number of characters that cover 99.9 % of the text, and the number of all its characters.

    Reads only the beginnings of the files. Thousands mean a script with a sign for each word or syllable.
    Skips what cannot be read: building the store reports it.
    """
    chosen = sources[:: max(1, len(sources) // _MOST_FILES)]
    counts: Counter[str] = Counter()
    for source in chosen:
        left = _MOST_CHARACTERS // len(chosen)
        try:
            for paragraph in read_paragraphs(source.path, corpus):
                counts.update((paragraph or "").casefold())
                left -= len(paragraph or "")
                if left <= 0:
                    break
        except UserError:
            continue
    covered = accumulate(count for _, count in counts.most_common())
    needed = sum(so_far < _COVERED * counts.total() for so_far in covered) + bool(counts)
    return needed, len(counts)
