"""A config -> its token store: opened if it stands, gone on with if interrupted, built otherwise.

Everything is written in `STORE.partial`, which gets its name, `STORE`, once it is whole.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path

from bertcli.config.schema import CorpusConfig, PretrainConfig
from bertcli.errors import UserError
from bertcli.files import disk_errors
from bertcli.store.chunks import read_chunks, stat_source
from bertcli.store.encode import encode_here, encode_in_processes
from bertcli.store.finish import check_heldout, count_store
from bertcli.store.journal import (
    JOURNAL,
    LOCK,
    Journal,
    clear_folder,
    lock_folder,
    read_journal,
    write_journal,
)
from bertcli.store.manifest import FORMAT_VERSION, MANIFEST, write_manifest
from bertcli.store.matching import check_matches, store_folder, store_options
from bertcli.store.progress import ProgressDisplay, Report
from bertcli.store.publish import publish
from bertcli.store.token_store import OpenStore, ids_dtype, open_store
from bertcli.store.vocabulary import load_given_tokenizer, train_on_corpus
from bertcli.store.writer import StoreWriter
from bertcli.text.sentences import check_language
from bertcli.text.sources import Source, find_sources
from bertcli.text.tokenizer import Tokenizer

JOURNAL_SECONDS = 5.0
"""An interrupted build does the work of so many seconds again, at most, besides reading its last file."""
SMALL_CORPUS = 4_000_000
"""Bytes on disk; below, starting processes takes longer than they save."""


def prepare_store(
    config: PretrainConfig,
    report: Report,
    overwrite: bool = False,
    processes: int | None = None,
    journal_seconds: float = JOURNAL_SECONDS,
) -> OpenStore:
    """The store of `config`, complete.

    Args:
        report: takes the lines that tell the user what happens.
        overwrite: build anew where a store stands already.
        processes: how many tokenise; None: one for each core, or none beside this one for a small
            corpus (0). The store never depends on it.
        journal_seconds: how often the build's progress is put on the disk.

    Raises:
        UserError: a corpus that cannot be read or holds no text; a store of something else in that place;
            fewer than two held-out documents; a folder that cannot be written; a full disk.
    """
    folder = store_folder(config)
    if (folder / MANIFEST).is_file():
        if not overwrite:
            store = open_store(folder)
            check_matches(folder, store.manifest, config)
            return store
    elif folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder}: a folder with something else in it; name another in corpus.store")
    partial = folder.with_name(f"{folder.name}.partial")
    with _disk_errors(folder), lock_folder(partial):
        _build(config, partial, report, processes, journal_seconds)
        publish(partial, folder)
        (folder / JOURNAL).unlink()
        (folder / LOCK).unlink()
    return open_store(folder)


def _disk_errors(folder: Path) -> AbstractContextManager[None]:
    return disk_errors(
        f"{folder}: the token store cannot be written",
        if_full="and run the command again: it goes on from here. Or name a folder elsewhere in corpus.store",
        if_refused="name a folder that can in output_dir or corpus.store",
    )


def _build(
    config: PretrainConfig, partial: Path, report: Report, processes: int | None, journal_seconds: float
) -> None:
    corpus = config.corpus
    check_language(corpus.language)
    sources = find_sources(corpus.files)
    records = [stat_source(source) for source in sources]
    given = load_given_tokenizer(config)
    key = {
        "version": FORMAT_VERSION,
        "options": store_options(config),
        "sources": [asdict(record) for record in records],
        "tokenizer": None if given is None else given.hash,
    }
    journal = read_journal(partial, key)
    if journal is None:
        clear_folder(partial)
        journal = Journal(key)
        write_journal(partial, journal)
    elif journal.progress.documents:
        report(f"going on with the interrupted build in {partial}")

    folder = partial / "tokenizer"
    if not journal.tokenizer_hash:
        options = config.tokenizer
        tokenizer = given or train_on_corpus(
            sources, corpus, options.vocab_size, options.lowercase, options.strip_accents, report, partial
        )
        tokenizer.save(folder)
        journal.tokenizer_hash = tokenizer.hash
        write_journal(partial, journal)
    tokenizer = Tokenizer.load(folder)

    writer = StoreWriter(partial, ids_dtype(tokenizer.vocab_size), corpus.heldout_fraction, journal.progress)
    try:
        processes = _num_processes(sources) if processes is None else processes
        _write_arrays(
            sources, corpus, tokenizer, partial, writer, journal, report, processes, journal_seconds
        )
    finally:
        writer.close()
    check_heldout(journal.progress, corpus.heldout_fraction)
    hashed = tuple(replace(r, sha256=sha256) for r, sha256 in zip(records, journal.hashes, strict=True))
    write_manifest(partial, count_store(partial, tokenizer, journal.progress, store_options(config), hashed))


def _write_arrays(
    sources: Sequence[Source],
    corpus: CorpusConfig,
    tokenizer: Tokenizer,
    partial: Path,
    writer: StoreWriter,
    journal: Journal,
    report: Report,
    processes: int,
    journal_seconds: float,
) -> None:
    """Tokenise what `journal` has not seen yet, saving it now and then and at the end."""

    def save() -> None:
        writer.sync()
        write_journal(partial, journal)

    start = writer.place
    del journal.hashes[start.file :]
    language = None if corpus.format == "sentences" else corpus.language
    with ProgressDisplay("tokenising", sources, report, start=start.file) as display:
        chunks = read_chunks(sources, corpus, start, journal.hashes, display.advance)
        encoded = (
            encode_in_processes(chunks, partial / "tokenizer", language, processes)
            if processes
            else encode_here(chunks, tokenizer, language)
        )
        saved = time.monotonic()
        for chunk, arrays in encoded:
            writer.add(chunk, arrays)
            if time.monotonic() - saved >= journal_seconds:
                save()
                saved = time.monotonic()
    save()


def _num_processes(sources: Sequence[Source]) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    small = sum(source.path.stat().st_size for source in sources) < SMALL_CORPUS
    return 0 if small or cores == 1 else cores
