"""A corpus section -> its files, and all that reading them takes, before anything is written."""

from __future__ import annotations

from bertcli.config.schema import CorpusConfig
from bertcli.text.extras import check_file_extras
from bertcli.text.sources import Source, find_sources


def find_corpus(corpus: CorpusConfig) -> list[Source]:
    """The corpus's files.

    Raises `UserError` where one is not there, or a package is missing that reading takes.
    """
    sources = find_sources(corpus.files)
    one_of_each_kind = {source.path.suffix: source for source in sources}
    for source in one_of_each_kind.values():
        check_file_extras(source.path, corpus.format == "parquet")
    return sources
