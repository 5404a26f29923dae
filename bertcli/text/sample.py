"""A corpus of any size -> a bounded sample of its paragraphs, to train a vocabulary on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from bertcli.config.schema import CorpusConfig
from bertcli.text.corpus import read_paragraphs
from bertcli.text.extent import text_bytes
from bertcli.text.sources import Source
from bertcli.text.streams import Progress, silent

SAMPLE_BYTES = 256_000_000
"""Approximate size of the sample, in UTF-8; never more than twice that."""


def sample_share(sources: Sequence[Source], num_bytes: int = SAMPLE_BYTES) -> float:
    """The share of the paragraphs to take: 1 for a corpus of up to `num_bytes`, estimated by file size."""
    return min(1.0, num_bytes / max(1, text_bytes(sources)))


def sample_paragraphs(
    sources: Sequence[Source], corpus: CorpusConfig, share: float, progress: Progress = silent
) -> Iterator[str]:
    """The paragraphs whose hash (BLAKE2b, 64 bits) falls within `share` of its range.

    The choice depends only on the text of a paragraph, so that it is distributed evenly over the corpus and
    the same each time.
    """
    limit = int(share * 2**64)
    taken = 0
    for source in sources:
        for paragraph in read_paragraphs(source.path, corpus, progress):
            if paragraph is None:
                continue
            data = paragraph.encode()
            if share < 1.0 and int.from_bytes(hashlib.blake2b(data, digest_size=8).digest()) >= limit:
                continue
            taken += len(data)
            if taken > 2 * SAMPLE_BYTES:
                return
            yield paragraph
