"""The beginning of a store's build: what is built in which folder, and its vocabulary, which is kept."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bertcli.config.schema import PretrainConfig
from bertcli.files import disk_errors
from bertcli.store.chunks import stat_source
from bertcli.store.corpus_files import bad_bytes_notes, corpus_notes
from bertcli.store.journal import Journal, clear_folder, lock_folder, read_journal, write_journal
from bertcli.store.manifest import FORMAT_VERSION, SourceRecord
from bertcli.store.matching import store_folder, store_options
from bertcli.store.parts import part_folder, share_out
from bertcli.store.progress import Report
from bertcli.store.vocabulary import load_given_tokenizer, train_on_corpus
from bertcli.store.writer import BuildProgress
from bertcli.text.sources import Source
from bertcli.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Plan:
    """What to build; `partial` already holds the tokenizer."""

    config: PretrainConfig
    partial: Path
    sources: Sequence[Source]
    records: Sequence[SourceRecord]
    key: dict[str, Any]
    tokenizer_hash: str

    def parts(self, number: int) -> list[tuple[Path, range]]:
        """Folder and files of each part."""
        files = share_out([record.size for record in self.records], number)
        return [(part_folder(self.partial, part, number), own) for part, own in enumerate(files)]

    def journal(self, folder: Path, files: range) -> Journal:
        """The journal in `folder` of the part with these files; an empty one if the part has not begun."""
        key = self.key if folder == self.partial else self.key | {"part": [files.start, files.stop]}
        return read_journal(folder, key) or Journal(key, self.tokenizer_hash)


def place_of(config: PretrainConfig) -> Path:
    """The folder of the store, where a link leads to."""
    folder = store_folder(config)
    return folder.resolve() if folder.is_symlink() else folder


def partial_of(config: PretrainConfig) -> Path:
    """The folder of its build."""
    place = place_of(config)
    return place.with_name(f"{place.name}.partial")


def begun_vocabulary(config: PretrainConfig, sources: Sequence[Source]) -> Tokenizer | None:
    """The vocabulary that was trained for a build of the same text and options; None: there is none."""
    partial = partial_of(config)
    journal = read_journal(partial, _key(config, [stat_source(source) for source in sources], None))
    if journal is None or not journal.tokenizer_hash:
        return None
    return Tokenizer.load(partial / "tokenizer")


def begin_vocabulary(config: PretrainConfig, sources: Sequence[Source], report: Report) -> Tokenizer:
    """Train the vocabulary, and keep it for the store's build. Raises `UserError` as `prepare_store`."""
    partial = partial_of(config)
    with store_disk_errors(partial), lock_folder(partial):
        begin_build(config, sources, partial, report=report)
        return Tokenizer.load(partial / "tokenizer")


def store_disk_errors(folder: Path) -> AbstractContextManager[None]:
    """Turns a full or read-only disk into a `UserError`; `folder`: of the store."""
    return disk_errors(
        f"{folder}: the token store cannot be written",
        if_full="and run the command again: it resumes from here. Or name a folder elsewhere in corpus.store",
        if_refused="name one that can be written in output_dir or corpus.store",
    )


def begin_build(config: PretrainConfig, sources: Sequence[Source], partial: Path, report: Report) -> Plan:
    """What to build. Trains the vocabulary; removes an interrupted build of something else."""
    corpus = config.corpus
    records = [stat_source(source) for source in sources]
    given = load_given_tokenizer(config)
    key = _key(config, records, given)
    for note in corpus_notes(sources, corpus):
        report(note)
    for note in bad_bytes_notes(sources, corpus, report):
        report(note)
    journal = read_journal(partial, key)
    if journal is None:
        clear_folder(partial)
        journal = Journal(key)
        write_journal(partial, journal)
    elif journal.tokenizer_hash:
        begun = journal.progress != BuildProgress()
        report(f"{'resuming the interrupted build' if begun else 'taking the vocabulary'} in {partial}")

    if not journal.tokenizer_hash:
        tokenizer = given or train_on_corpus(
            sources,
            corpus,
            config.tokenizer,
            report=report,
            model_type=config.model.fresh.family.model_type,
            spool_folder=partial,
        )
        tokenizer.save(partial / "tokenizer")
        journal.tokenizer_hash = tokenizer.hash
        write_journal(partial, journal)
    return Plan(config, partial, sources, records=records, key=key, tokenizer_hash=journal.tokenizer_hash)


def _key(config: PretrainConfig, records: Sequence[SourceRecord], given: Tokenizer | None) -> dict[str, Any]:
    return {
        "version": FORMAT_VERSION,
        "options": store_options(config),
        "sources": [asdict(record) for record in records],
        "tokenizer": None if given is None else given.hash,
    }
