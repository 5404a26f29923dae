"""A config -> its token store: opened if it stands, gone on with if interrupted, built otherwise.

Everything is written in `STORE.partial`, which gets its name, `STORE`, once it is whole.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

from bertcli.config.schema import PretrainConfig
from bertcli.data.build_progress import ProgressDisplay
from bertcli.data.chunks import read_chunks, stat_source
from bertcli.data.encode import encode_here, encode_in_processes
from bertcli.data.finish import check_heldout, count_store
from bertcli.data.journal import (
    JOURNAL,
    LOCK,
    Journal,
    clear_folder,
    lock_folder,
    read_journal,
    write_journal,
)
from bertcli.data.manifest import FORMAT_VERSION, MANIFEST, write_manifest
from bertcli.data.matching import (
    check_matches,
    given_tokenizer,
    load_given_tokenizer,
    store_folder,
    store_options,
)
from bertcli.data.store import OpenStore, ids_dtype, open_store
from bertcli.data.store_writer import StoreWriter
from bertcli.errors import UserError
from bertcli.text.sample import SAMPLE_BYTES, sample_paragraphs, sample_share
from bertcli.text.sentences import check_language
from bertcli.text.sources import Source, find_sources
from bertcli.text.tokenizer import Tokenizer
from bertcli.text.train_tokenizer import train_tokenizer

Report = Callable[[str], None]
"""Takes a line for the user."""

JOURNAL_SECONDS = 5.0
"""An interrupted build does the work of so many seconds again, at most."""
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
        overwrite: build anew where a store stands that was built from something else.
        processes: how many tokenise; None: one for each core, or none for a small corpus. The store
            never depends on it.
        journal_seconds: how often the build's progress is put on the disk.

    Raises:
        UserError: a corpus that cannot be read or holds no text; a store of something else in that place;
            fewer than two held-out documents; a folder that cannot be written; a full disk.
    """
    folder = store_folder(config)
    if (folder / MANIFEST).is_file():
        store = open_store(folder) if not overwrite else None
        if store is not None:
            check_matches(folder, store.manifest, config)
            return store
    elif folder.is_dir() and any(folder.iterdir()):
        raise UserError(f"{folder}: a folder with something else in it; name another in corpus.store")
    partial = folder.with_name(f"{folder.name}.partial")
    with _disk_errors(folder), lock_folder(partial):
        _build(config, partial, report, processes, journal_seconds)
        _publish(partial, folder)
    return open_store(folder)


def _build(
    config: PretrainConfig, partial: Path, report: Report, processes: int | None, journal_seconds: float
) -> None:
    corpus = config.corpus
    check_language(corpus.language)
    sources = find_sources(corpus.files)
    records = [stat_source(source) for source in sources]
    path = given_tokenizer(config)
    given = None if path is None else load_given_tokenizer(config, path)
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
    tokenizer = _settle_tokenizer(config, sources, given, partial, journal, report)
    writer = StoreWriter(partial, ids_dtype(tokenizer.vocab_size), corpus.heldout_fraction, journal.progress)
    try:
        _write_arrays(
            config, sources, partial, tokenizer, writer, journal, report, processes, journal_seconds
        )
    finally:
        writer.close()
    check_heldout(journal.progress, corpus.heldout_fraction)
    hashed = tuple(replace(r, sha256=sha256) for r, sha256 in zip(records, journal.hashes, strict=True))
    manifest = count_store(partial, tokenizer, journal.progress, store_options(config), hashed)
    write_manifest(partial, manifest)


def _settle_tokenizer(
    config: PretrainConfig,
    sources: list[Source],
    given: Tokenizer | None,
    partial: Path,
    journal: Journal,
    report: Report,
) -> Tokenizer:
    """The build's tokenizer, in the folder before anything is built with it: given, trained, or found there."""
    folder = partial / "tokenizer"
    if journal.tokenizer_hash:
        return Tokenizer.load(folder)
    tokenizer = given or _train(config, sources, report)
    tokenizer.save(folder)
    journal.tokenizer_hash = tokenizer.hash
    write_journal(partial, journal)
    return tokenizer


def _train(config: PretrainConfig, sources: list[Source], report: Report) -> Tokenizer:
    wanted, share = config.tokenizer.vocab_size, sample_share(sources)
    of_what = (
        "all of the text" if share == 1.0 else f"a sample of {share:.2%}, about {SAMPLE_BYTES // 10**6} MB"
    )
    report(f"training a vocabulary of {wanted:,} entries on {of_what}")
    with ProgressDisplay("reading", sources, report) as display:
        paragraphs = sample_paragraphs(sources, config.corpus, share, display.advance)
        tokenizer = train_tokenizer(
            paragraphs, wanted, config.tokenizer.lowercase, config.tokenizer.strip_accents
        )
    if tokenizer.vocab_size < wanted:
        report(
            f"note: the text gives {tokenizer.vocab_size:,} vocabulary entries, not {wanted:,}: it is too short"
        )
    return tokenizer


def _write_arrays(
    config: PretrainConfig,
    sources: list[Source],
    partial: Path,
    tokenizer: Tokenizer,
    writer: StoreWriter,
    journal: Journal,
    report: Report,
    processes: int | None,
    journal_seconds: float,
) -> None:
    hashes = journal.hashes[: writer.place.file]
    language = None if config.corpus.format == "sentences" else config.corpus.language
    processes = _num_processes(sources) if processes is None else processes
    with ProgressDisplay("tokenising", sources, report, start=writer.place.file) as display:
        chunks = read_chunks(sources, config.corpus, writer.place, hashes, display.advance)
        encoded = (
            encode_in_processes(chunks, partial / "tokenizer", language, processes)
            if processes
            else encode_here(chunks, tokenizer, language)
        )
        saved = time.monotonic()
        for chunk, arrays in encoded:
            writer.add(chunk, arrays)
            if time.monotonic() - saved >= journal_seconds:
                _save(partial, writer, journal, hashes)
                saved = time.monotonic()
    _save(partial, writer, journal, hashes)


def _save(partial: Path, writer: StoreWriter, journal: Journal, hashes: list[str]) -> None:
    writer.sync()
    journal.hashes = hashes
    write_journal(partial, journal)


def _num_processes(sources: list[Source]) -> int:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    small = sum(source.path.stat().st_size for source in sources) < SMALL_CORPUS
    return 0 if small or cores == 1 else cores


def _publish(partial: Path, folder: Path) -> None:
    """Give a whole store its name; one that stood there goes."""
    (partial / JOURNAL).unlink()
    (partial / LOCK).unlink()
    if folder.exists():
        old = folder.with_name(f"{folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        os.rename(folder, old)
        os.rename(partial, folder)
        shutil.rmtree(old)
    else:
        os.rename(partial, folder)


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise UserError(
                f"{folder}: {os.strerror(error.errno).lower()} while building the token store; what was there is "
                "whole. Free some space, or name a folder elsewhere in corpus.store, and run the command again: "
                "it goes on from here"
            ) from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST):
            raise UserError(
                f"{folder}: the token store cannot be written: {os.strerror(error.errno).lower()}; name a folder "
                "that can in output_dir or corpus.store"
            ) from None
        raise
