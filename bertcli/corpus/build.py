"""A config -> its token store: an existing one is opened, an interrupted build resumed, else one is built."""

import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from bertcli.config.run import PretrainRecipe
from bertcli.corpus.begin import (
    JOURNAL,
    LOCK,
    NOTE_PARTIAL,
    Journal,
    Plan,
    begin_build,
    lock_folder,
    partial_of,
    place_of,
    store_disk_errors,
    write_journal,
)
from bertcli.corpus.chunks import Place, Report, find_corpus, progress_display, read_chunks
from bertcli.corpus.encode import encode_here, encode_in_processes
from bertcli.corpus.finish import check_arrays, check_heldout, count_store, drop_gathered, heldout_line
from bertcli.corpus.manifest import MANIFEST, Manifest, write_manifest
from bertcli.corpus.matching import check_matches, different_files, output_paths, store_folder, store_options
from bertcli.corpus.parts import CUT, Alone, Team, cut_sides, is_cut, join_parts, part_folders, put_in_place
from bertcli.corpus.sources import Source
from bertcli.corpus.token_store import OpenStore, ids_dtype, open_store
from bertcli.corpus.writer import StoreWriter
from bertcli.folders.mark import NOTE, Note, read_note, write_note
from bertcli.folders.sealed import walk
from bertcli.system.errors import UserError
from bertcli.system.signals import said_on_ctrl_c
from bertcli.tokenizer.tokenizer import Tokenizer


def check_replaceable(folder: Path) -> None:
    """Raise `UserError` if `folder` holds anything but a store that bertcli built, or remains of one."""
    others = _others(folder)
    if others or not folder.is_dir():
        what = f"a folder with other files in it: {', '.join(others[:5])}" if others else "not a folder"
        raise UserError(f"{folder}: {what}. Name another in corpus.store, or move that elsewhere")
    if os.path.ismount(folder):
        raise UserError(f"{folder}: a disk is mounted there; name a folder in it in corpus.store")


def publish(partial: Path, folder: Path) -> None:
    """Rename a complete store to `folder`; an existing store of that name is removed.

    Raises `UserError` if something else took that name while the store was built.
    """
    for path in partial.iterdir():
        if NOTE_PARTIAL.fullmatch(path.name):
            path.unlink()
    names = [str(path.relative_to(partial)) for path in walk(partial)]
    write_note(partial, Note("store", {name: [] for name in sorted({*names, NOTE, JOURNAL, LOCK})}))
    if os.path.lexists(folder):
        check_replaceable(folder)
        _remove(folder)
    os.rename(partial, folder)


def _remove(folder: Path) -> None:
    """Remove a store, the manifest first and the note last. After a kill, the rest is no store, but its note
    still shows that bertcli wrote it."""
    paths = walk(folder)
    for path in sorted(paths, key=lambda path: {MANIFEST: -1, NOTE: 1}.get(path.name, 0)):
        path.unlink()
    for name in sorted({path.parent for path in paths if path.parent != folder}, reverse=True):
        name.rmdir()


def _others(folder: Path) -> list[str]:
    """The names of files in a store's folder that bertcli did not write."""
    if not folder.is_dir():
        return []
    note = read_note(folder, "store")
    listed = note.files if note else {}
    found = [path.relative_to(folder) for path in walk(folder)]
    return [str(name) for name in found if str(name) not in listed or (folder / name).is_symlink()]


ALONE = Alone()
JOURNAL_SECONDS = 5.0
"""Seconds between journals: a resumed build repeats about this much work, and reads its last file again."""
SMALL_CORPUS = 4_000_000
"""Bytes on disk. A smaller corpus is tokenized in one process, since starting others takes longer."""


def prepare_store(
    config: PretrainRecipe,
    report: Report,
    overwrite: bool = False,
    processes: int | None = None,
    team: Team = ALONE,
    verify: bool = False,
    check: Callable[[Manifest], None] = lambda manifest: None,
) -> OpenStore:
    """The complete store of `config`; the arrays of an existing store are compared with their hashes.

    Args:
        report: takes lines for the user.
        overwrite: build the store again even if it exists.
        processes: the number of processes that tokenize. 0 means this process alone; None means one per core,
            or 0 for a small corpus. The store never depends on it.
        team: the processes that call this together and divide the files; the store never depends on it.
        verify: compare every block, at any size of the store; also for a new store.
        check: raises `UserError` if a store is of no use; it runs before a new store is put in place.

    Raises:
        UserError: the corpus cannot be read or holds no text; the existing store is damaged or was built from
            something else; fewer than two documents are held out; a folder cannot be written; the disk is
            full.
    """
    folder = store_folder(config)
    place, partial = place_of(config), partial_of(config)

    def tokenizer_of_existing() -> Tokenizer | None:
        if (folder / MANIFEST).is_file() and not overwrite:
            store = open_store(folder)
            check_matches(folder, store.manifest, config)
            check(store.manifest)
            check_arrays(store, config.seed, report, every_block=verify)
            return store.tokenizer
        if os.path.lexists(folder):
            check_replaceable(place)
        return None

    def begin() -> Plan:
        sources = find_corpus(config.corpus, output_paths(config))
        with store_disk_errors(folder):
            held.enter_context(lock_folder(partial))
            return begin_build(config, sources, partial, report=report)

    def tokenize() -> None:
        with store_disk_errors(folder):
            _tokenize(plan, team, report, processes=processes)

    def finish() -> None:
        with store_disk_errors(folder):
            _finish(plan, team.num_ranks(), report, check=check)
            publish(partial, place)
            drop_gathered(folder)
            (folder / JOURNAL).unlink()
            (folder / LOCK).unlink()
            if verify:
                check_arrays(open_store(folder, plan.tokenizer), config.seed, report, every_block=verify)

    tokenizer = team.on_first(tokenizer_of_existing)
    if tokenizer is None:
        with ExitStack() as held:
            with said_on_ctrl_c(lambda: "stopped before a text was tokenized: the same command starts again"):
                plan = team.on_first(begin)
            with said_on_ctrl_c(
                lambda: f"stopped: {partial} keeps what is tokenized; the same command goes on"
            ):
                team.on_each(tokenize)
                team.on_first(finish)
        tokenizer = plan.tokenizer.moved(folder / "tokenizer")
    return open_store(folder, tokenizer)


def _tokenize(plan: Plan, team: Team, report: Report, processes: int | None) -> None:
    """Tokenize the files that this rank's journal does not list yet; save the journal at intervals."""
    corpus = plan.config.corpus
    folder, files = plan.parts(team.num_ranks())[team.rank()]
    folder.mkdir(exist_ok=True)
    sources = plan.sources[files.start : files.stop]
    journal, tokenizer = plan.journal(folder, files), plan.tokenizer
    if processes is None:
        processes = num_processes(sources, team.num_local_ranks())
    dtype = ids_dtype(tokenizer.vocab_size)
    language = None if corpus.format == "sentences" else corpus.language
    start = Place(journal.progress.file, journal.progress.documents)
    del journal.hashes[start.file :]

    def save() -> None:
        writer.sync()
        write_journal(folder, journal)

    with closing(StoreWriter(folder, dtype, corpus.heldout_fraction, progress=journal.progress)) as writer:
        with progress_display("tokenizing", sources, report, start=start.file) as advance:
            chunks = read_chunks(sources, corpus, start, hashes=journal.hashes, progress=advance)
            encoded = (
                encode_in_processes(chunks, plan.partial / "tokenizer", language, processes=processes)
                if processes
                else encode_here(chunks, tokenizer, language)
            )
            saved = time.monotonic()
            for chunk, arrays in encoded:
                writer.add(chunk, arrays)
                if time.monotonic() - saved >= JOURNAL_SECONDS:
                    save()
                    saved = time.monotonic()
        save()


def num_processes(sources: Sequence[Source], num_local_ranks: int) -> int:
    """The number of worker processes that tokenize; 0 for a small corpus, or if a rank has one core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    small = sum(source.size for source in sources) < SMALL_CORPUS
    own = cores // num_local_ranks
    return 0 if small or own <= 1 else own


def _finish(plan: Plan, num_parts: int, report: Report, check: Callable[[Manifest], None]) -> None:
    """Join the parts into one store and write its manifest."""
    config, tokenizer = plan.config, plan.tokenizer
    parts = [(folder, plan.journal(folder, files)) for folder, files in plan.parts(num_parts)]
    progress = parts[0][1].progress
    if num_parts > 1:
        progresses = [(folder, journal.progress) for folder, journal in parts]
        progress = join_parts(plan.partial, progresses, ids_dtype(tokenizer.vocab_size))
    fraction = config.corpus.heldout_fraction
    if is_cut(progress, fraction):
        progress = cut_sides(plan.partial, ids_dtype(tokenizer.vocab_size), progress, fraction=fraction)
        check_heldout(progress, fraction)
        report(heldout_line(progress))
        # The arrays no longer match the journal: a build that is killed here starts from the beginning.
        write_journal(plan.partial, Journal(plan.key | {CUT: True}, tokenizer.hash))
        put_in_place(plan.partial)
    check_heldout(progress, fraction)
    hashes = [sha256 for _, journal in parts for sha256 in journal.hashes]
    sources = tuple(replace(r, sha256=sha256) for r, sha256 in zip(plan.records, hashes, strict=True))
    if changed := different_files(sources, plan.sources):
        raise UserError(f"{changed[0]}, while the store was built; run the command again")
    manifest = count_store(plan.partial, tokenizer, progress, options=store_options(config), sources=sources)
    check(manifest)
    write_manifest(plan.partial, manifest)
    for folder in part_folders(plan.partial):
        shutil.rmtree(folder)
