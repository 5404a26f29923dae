"""A corpus section -> its files and notes about them, before anything is written."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from bertcli.config.decoding import fits
from bertcli.config.schema import CorpusConfig
from bertcli.errors import UserError
from bertcli.store.progress import Report, progress_display
from bertcli.text.decoders import mark_note
from bertcli.text.layout import layout_advice
from bertcli.text.sentences import rules_used
from bertcli.text.sources import Source, find_sources
from bertcli.text.streams import check_file_extras, deciding_mark, find_bad_lines


def encoding_notes(sources: Sequence[Source], corpus: CorpusConfig) -> list[str]:
    """A line for the user if files have a byte order mark that decides over `corpus.encoding`, else none."""
    if corpus.format == "parquet":
        return []
    found = [
        (source, mark)
        for source in sources
        if (mark := deciding_mark(source.path, corpus.decoding(source.path).encoding))
    ]
    if not found:
        return []
    (first, mark), others = found[0], len(found) - 1
    more = f", and so are {others:,} other files" if others else ""
    return [f"{mark_note(first.path, mark)}{more}"]


def bad_bytes_notes(sources: Sequence[Source], corpus: CorpusConfig, report: Report) -> list[str]:
    """Lines for the user about bytes that `corpus.bad_bytes` replaces or leaves out with their lines. Reads
    all files, unless it refuses such bytes."""
    if corpus.bad_bytes == "refuse" or corpus.format == "parquet":
        return []
    notes: list[str] = []
    with progress_display("looking for bad bytes", sources, report) as advance:
        for source in sources:
            decoding = corpus.decoding(source.path)
            bad = find_bad_lines(source.path, decoding, advance)
            notes += bad.notes(source.path, decoding)
    return notes


def corpus_notes(sources: Sequence[Source], corpus: CorpusConfig) -> list[str]:
    """Lines for the user before the text is read: encodings, layout, and the rules that split sentences."""
    notes = encoding_notes(sources, corpus)
    notes += [f"warning: {advice.problem}; {advice.mend}" for advice in layout_advice(sources, corpus)]
    if corpus.format != "sentences" and (rules := rules_used(corpus.language)) != corpus.language:
        notes.append(f"sentences: there are no rules for {corpus.language}; those for {rules} are used")
    return notes


def find_corpus(corpus: CorpusConfig, outputs: Collection[Path] = ()) -> list[Source]:
    """The files of the corpus, without `outputs` (`store.matching.output_paths`), which it may contain.

    Raises `UserError` where a file is missing, or a package that reading it needs; for a name in
    `corpus.encodings` that is none of a file.
    """
    sources = find_sources(corpus.files, outputs)
    for name in corpus.encodings:
        if not any(fits(source.path, name) for source in sources):
            raise UserError(f"corpus.encodings: {name}: no file of the corpus has this name or fits it")
    one_of_each_kind = {source.path.suffix: source for source in sources}
    for source in one_of_each_kind.values():
        check_file_extras(source.path, corpus.format == "parquet")
    return sources
