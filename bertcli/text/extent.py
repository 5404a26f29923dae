"""Corpus files -> how much text they hold, and how many characters it needs, without reading it all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from bertcli.config.schema import CorpusConfig
from bertcli.errors import UserError
from bertcli.text.corpus import read_paragraphs
from bertcli.text.sources import Source

COMPRESSION = 4
"""Bytes of text in a byte of .gz, .zst or Parquet, about."""
_PACKED = (".gz", ".zst", ".parquet")
_LOOKED_AT = 4_000_000
"""Characters of the whole corpus, at most."""
_FILES = 100
"""Of a corpus of many, evenly spaced."""
_COVERED = 0.999
"""Share of the text: what is rarer are stray signs of other scripts."""


def text_bytes(sources: Sequence[Source]) -> float:
    """Bytes of text, by the files' sizes: compressed ones count `COMPRESSION` times."""
    return float(
        sum(s.path.stat().st_size * (COMPRESSION if s.path.suffix in _PACKED else 1) for s in sources)
    )


def count_characters(sources: Sequence[Source], corpus: CorpusConfig) -> tuple[int, int]:
    """The fewest different characters that 99.9 % of the text consists of, and how many there are in all.

    Only the beginnings of the files are read. Thousands mean a script with a sign for each word or syllable.
    What cannot be read is passed over: building the store says so.
    """
    chosen = sources[:: max(1, len(sources) // _FILES)]
    counts: Counter[str] = Counter()
    for source in chosen:
        left = _LOOKED_AT // len(chosen)
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
