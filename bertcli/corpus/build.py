"""A config -> its token store: an existing one is opened, an interrupted build resumed, else one is built."""

import functools
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

from bertcli.config.run import PretrainRecipe
from bertcli.corpus import begin, finish, matching, parts
from bertcli.corpus.chunks import Place, find_corpus, progress_display, read_chunks
from bertcli.corpus.encode import encode_chunks
from bertcli.corpus.files import CorpusFile
from bertcli.corpus.manifest import MANIFEST, FileRecord, Manifest, write_manifest
from bertcli.corpus.pieces import LOGS
from bertcli.corpus.token_store import OpenStore, ids_dtype, open_store
from bertcli.corpus.writer import StoreWriter
from bertcli.folders.mark import NOTE, Note, read_note, write_note
from bertcli.folders.sealed import walk
from bertcli.system.errors import UserError
from bertcli.system.signals import said_on_ctrl_c
from bertcli.system.terminal import Report
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
        if begin.NOTE_PARTIAL.fullmatch(path.name):
            path.unlink()
    names = {NOTE, *(str(path.relative_to(partial)) for path in walk(partial))}
    write_note(partial, Note("store", {name: [] for name in sorted(names)}))
    if os.path.lexists(folder):
        check_replaceable(folder)
        # After a kill, the rest is no store, but its note still shows that bertcli wrote it.
        begin.remove_content(folder, {MANIFEST: -1, NOTE: 1})
    os.rename(partial, folder)


def _others(folder: Path) -> list[str]:
    """The names of files in a store's folder that bertcli did not write."""
    if not folder.is_dir():
        return []
    note = read_note(folder, "store")
    listed = note.files if note else {}
    found = [path.relative_to(folder) for path in walk(folder)]
    return [str(name) for name in found if str(name) not in listed or (folder / name).is_symlink()]


JOURNAL_SECONDS = 5.0
"""Seconds between journals: a resumed build repeats about this much work, and reads its last file again."""
SMALL_CORPUS = 4_000_000
"""Bytes on disk. A smaller corpus is tokenized in one process, since starting others takes longer."""


def prepare_store(
    config: PretrainRecipe,
    report: Report,
    overwrite: bool = False,
    processes: int | None = None,
    team: parts.Team = parts.Alone(),
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
    folder = matching.store_folder(config)

    def existing_tokenizer() -> Tokenizer | None:
        if (folder / MANIFEST).is_file() and not overwrite:
            store = open_store(folder)
            matching.check_matches(folder, store.manifest, config)
            check(store.manifest)
            return store.tokenizer
        if os.path.lexists(folder):
            check_replaceable(begin.place_of(config))
        return None

    existing = team.on_first(existing_tokenizer)
    tokenizer = existing or _build(config, report, processes=processes, team=team, check=check)
    store = open_store(folder, tokenizer)
    if existing or verify:
        team.on_first(lambda: finish.check_arrays(store, config.seed, report, every_block=verify))
    return store


def _build(
    config: PretrainRecipe,
    report: Report,
    processes: int | None,
    team: parts.Team,
    check: Callable[[Manifest], None],
) -> Tokenizer:
    """Build the store of `config`, or go on with an interrupted build. Return its tokenizer."""
    folder, partial = matching.store_folder(config), begin.partial_of(config)
    with ExitStack() as held:

        def plan_build() -> begin.Plan:
            files = find_corpus(config.corpus, matching.output_paths(config))
            with begin.store_disk_errors(folder):
                held.enter_context(begin.lock_folder(partial))
                return begin.begin_build(config, files, report)

        def put_together() -> None:
            with begin.store_disk_errors(folder):
                _finish(plan, team.num_ranks(), report, check=check)
                publish(partial, begin.place_of(config))
                finish.drop_gathered(folder)
                (folder / begin.JOURNAL).unlink()
                (folder / begin.LOCK).unlink()

        with said_on_ctrl_c(lambda: "stopped before a text was tokenized: the same command starts again"):
            plan = team.on_first(plan_build)
        with said_on_ctrl_c(lambda: f"stopped: {partial} keeps what is tokenized; the same command goes on"):
            number = len(plan.parts(team.num_ranks()))
            team.for_parts(number, functools.partial(_tokenize, plan, team, report, processes))
            team.on_first(put_together)
    return plan.tokenizer.moved(folder / "tokenizer")


def _tokenize(plan: begin.Plan, team: parts.Team, report: Report, processes: int | None, part: int) -> None:
    """Tokenize the files that a part's journal does not list yet; save the journal at intervals."""
    corpus, tokenizer = plan.config.corpus, plan.tokenizer
    folder, own = plan.parts(team.num_ranks())[part]
    files, journal = plan.files[own.start : own.stop], plan.journal(folder, own)
    if processes is None:
        processes = num_processes(files, team.num_local_ranks())
    start = Place(journal.progress.file, journal.progress.documents)
    del journal.hashes[start.file :]

    def save() -> None:
        writer.sync()
        begin.write_journal(folder, journal)

    with ExitStack() as opened:
        opened.enter_context(begin.store_disk_errors(matching.store_folder(plan.config)))
        folder.mkdir(exist_ok=True)
        dtype, fraction = ids_dtype(tokenizer.vocab_size), corpus.heldout_fraction
        writer = opened.enter_context(
            closing(StoreWriter(folder, dtype, fraction, progress=journal.progress))
        )
        with progress_display("tokenizing", files, report, start=start.file) as advance:
            chunks = read_chunks(files, corpus, start, hashes=journal.hashes, progress=advance)
            stored = plan.partial / "tokenizer"
            saved = time.monotonic()
            for chunk, arrays in encode_chunks(chunks, plan.encoder, stored, processes=processes):
                writer.add(chunk, arrays)
                if time.monotonic() - saved >= JOURNAL_SECONDS:
                    save()
                    saved = time.monotonic()
        save()


def num_processes(files: Sequence[CorpusFile], num_local_ranks: int) -> int:
    """The number of worker processes that tokenize; 0 for a small corpus, or if a rank has one core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    small = sum(file.size for file in files) < SMALL_CORPUS
    own = cores // num_local_ranks
    return 0 if small or own <= 1 else own


def _finish(plan: begin.Plan, num_parts: int, report: Report, check: Callable[[Manifest], None]) -> None:
    """Join the parts into one store and write its manifest."""
    config, tokenizer, partial = plan.config, plan.tokenizer, plan.partial
    dtype, fraction = ids_dtype(tokenizer.vocab_size), config.corpus.heldout_fraction
    journals = [(folder, plan.journal(folder, own)) for folder, own in plan.parts(num_parts)]
    progress = journals[0][1].progress
    if num_parts > 1:
        progress = parts.join_parts(partial, [(each, journal.progress) for each, journal in journals], dtype)
    names = config.corpus.source_names
    if any(parts.is_cut(source, fraction) for source in progress.sources):
        progress = parts.cut_sides(partial, dtype, progress, fraction=fraction)
        finish.check_heldout(progress, fraction)
        for line in finish.heldout_lines(progress, names):
            report(line)
        # The arrays no longer match the journal: a build that is killed here starts from the beginning.
        begin.write_journal(partial, begin.Journal(plan.key | {parts.CUT: True}, progress, tokenizer.hash))
        parts.put_in_place(partial)
    finish.check_heldout(progress, fraction)
    hashes = [sha256 for _, journal in journals for sha256 in journal.hashes]
    records = [replace(record, sha256=sha256) for record, sha256 in zip(plan.records, hashes, strict=True)]
    change = next(matching.different_files(records, plan.files), None)
    if change is not None:
        raise UserError(f"{change}, while the store was built; run the command again")
    options = matching.store_options(config)
    of_source: list[list[FileRecord]] = [[] for _ in names]
    for file, record in zip(plan.files, records, strict=True):
        of_source[file.source].append(record)
    manifest = finish.count_store(
        partial, tokenizer, progress, options=options, files=dict(zip(names, of_source, strict=True))
    )
    check(manifest)
    write_manifest(partial, manifest)
    for folder in parts.part_folders(partial):
        # The journal goes first: after a kill, it must not vouch for arrays that are gone. A part that was
        # killed at its start has none.
        (folder / begin.JOURNAL).unlink(missing_ok=True)
        shutil.rmtree(folder)
    shutil.rmtree(partial / LOGS, ignore_errors=True)
