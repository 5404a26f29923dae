"""The beginning of a store's build: its folder, the journal of an earlier build, and the vocabulary."""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bertcli.config.run import PretrainRecipe
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.chunks import corpus_notes, stat_file
from bertcli.corpus.encode import ChunkEncoder
from bertcli.corpus.files import CorpusFile
from bertcli.corpus.manifest import FORMAT_VERSION, MANIFEST, FileRecord, type_adapter
from bertcli.corpus.matching import load_given_tokenizer, store_folder, store_options, train_on_corpus
from bertcli.corpus.parts import part_folder, share_out
from bertcli.corpus.pieces import LOGS
from bertcli.corpus.writer import BuildProgress
from bertcli.folders.mark import NOTE
from bertcli.folders.sealed import walk
from bertcli.system.errors import UserError
from bertcli.system.files import disk_errors, flush_to_disk, has_file, is_lock, lock_file, plain_text
from bertcli.system.terminal import Report
from bertcli.tokenizer.tokenizer import Tokenizer

JOURNAL = "building.json"
LOCK = "building.lock"
_TOKENIZER = ("vocab.txt", "tokenizer.json", "tokenizer_config.json")
_FILES = {JOURNAL, f"{JOURNAL}.new", LOCK, MANIFEST, NOTE, *(f"tokenizer/{name}" for name in _TOKENIZER)}
NOTE_PARTIAL = re.compile(rf"\.{re.escape(NOTE)}\.[0-9a-f]{{8}}\.partial")
"""A partly written note, which a kill leaves behind."""
_ARRAY = re.compile(r"(train|heldout)/\w+\.(bin|hashes)|hashes\.bin")


@dataclass
class Journal:
    """The content of `building.json`, which is replaced atomically after its arrays are on the disk.

    Attributes:
        key: the format, options, files and tokenizer of the build; a build with another key is not resumed.
        tokenizer_hash: the hash of the tokenizer; empty until the folder holds it.
        hashes: the SHA-256 of each file that was read to its end.
    """

    key: dict[str, Any]
    progress: BuildProgress
    tokenizer_hash: str = ""
    hashes: list[str] = field(default_factory=list)


def read_journal(folder: Path, key: dict[str, Any]) -> Journal | None:
    """The journal of the build of `key` in `folder`; None if missing, damaged, or of another build."""
    path = folder / JOURNAL
    if not has_file(path):
        return None
    try:
        value = json.loads(plain_text(path))
        if value.pop("sha256") != _hash(value) or value["key"] != key:
            return None
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    return type_adapter(Journal).validate_python(value)


def write_journal(folder: Path, journal: Journal) -> None:
    """Replace `building.json` atomically; it is on the disk when this returns."""
    new = folder / f"{JOURNAL}.new"
    with open(new, "w", encoding="utf-8") as file:
        value = asdict(journal)
        json.dump(value | {"sha256": _hash(value)}, file)
        flush_to_disk(file)
    os.replace(new, folder / JOURNAL)


def _hash(journal: dict[str, Any]) -> str:
    """The hash of a journal. It guards against a wrong number, which would silently leave out documents."""
    return hashlib.sha256(json.dumps(journal, sort_keys=True).encode()).hexdigest()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock `folder` against other builds; the folder is created if missing.

    Raises a `UserError` that names the other build, or a path in the folder that no build wrote.
    """
    refusal, instead = (
        f"{folder}: this store is being built by",
        "wait for it, or name another folder in corpus.store",
    )
    with ExitStack() as held:
        try:
            _check_own(folder)
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(lock_file(folder / LOCK, refusal, instead))
        except FileNotFoundError:  # the other build has just ended and renamed the folder
            raise UserError(f"{refusal} another process; {instead}") from None
        yield


def remove_content(folder: Path, order: Mapping[str, int], keep: str = "") -> None:
    """Remove all in `folder` but the file `keep`, also empty inner folders.

    `order`: name of a file -> a number; the smallest number goes first, and other names have the number 0.
    """
    paths = [path for path in walk(folder) if path != folder / keep]
    for path in sorted(paths, key=lambda path: order.get(path.name, 0)):
        path.rmdir() if path.is_dir() else path.unlink()
    for inner in sorted({path.parent for path in paths if path.parent != folder}, reverse=True):
        inner.rmdir()


def _check_own(folder: Path) -> None:
    """Raise `UserError` if `folder` holds anything that no build wrote, or if it lacks a build's lock."""
    if not os.path.lexists(folder):
        return
    others = [folder]
    if folder.is_dir() and not folder.is_symlink():
        paths = walk(folder)
        others = [path for path in paths if not _is_of_a_build(path, path.relative_to(folder))]
        if paths and not others and not is_lock(folder / LOCK):
            others = paths
    if others:
        raise UserError(
            f"{others[0]}: bertcli did not write this, and the store cannot be built there; move it "
            "elsewhere, or name another folder in corpus.store"
        )


def _is_of_a_build(path: Path, name: Path) -> bool:
    """True if a build writes files of this name."""
    if path.is_symlink():
        return False
    inner = re.sub(r"^(part-\d+-of-\d+/?|cut-)", "", str(name))
    is_named = inner in _FILES or _ARRAY.fullmatch(inner) or NOTE_PARTIAL.fullmatch(str(name))
    return path.is_dir() or name.parts[0] == LOGS or bool(is_named)


@dataclass(frozen=True)
class Plan:
    """The plan of a build; the folder `partial` already holds the tokenizer.

    Attributes:
        tokenizer: what the folder holds.
    """

    config: PretrainConfig
    partial: Path
    files: Sequence[CorpusFile]
    records: Sequence[FileRecord]
    key: dict[str, Any]
    tokenizer: Tokenizer

    @cached_property
    def encoder(self) -> ChunkEncoder:
        """The encoder of this process. A word that it learned in one part is known in the next one."""
        return ChunkEncoder(self.tokenizer, self.config.corpus)

    def parts(self, number: int) -> list[tuple[Path, range]]:
        """The folder and the files of each part that has files."""
        ranges = share_out([record.size for record in self.records], number)
        return [(part_folder(self.partial, part, number), own) for part, own in enumerate(ranges) if own]

    def journal(self, folder: Path, own: range) -> Journal:
        """The journal of the part with these files in `folder`; an empty one if the part has not begun."""
        key = self.key if folder == self.partial else self.key | {"part": [own.start, own.stop]}
        progress = BuildProgress.begin(self.config.corpus.num_sources)
        return read_journal(folder, key) or Journal(key, progress, self.tokenizer.hash)


def place_of(config: PretrainConfig) -> Path:
    """The folder of the store; for a link, the folder to which it leads."""
    folder = store_folder(config)
    return folder.resolve() if folder.is_symlink() else folder


def partial_of(config: PretrainConfig) -> Path:
    """The folder in which the store is built."""
    place = place_of(config)
    return place.with_name(f"{place.name}.partial")


def begun_vocabulary(config: PretrainConfig, files: Sequence[CorpusFile]) -> Tokenizer | None:
    """The vocabulary trained for a build of the same text and options; None if there is none."""
    partial = partial_of(config)
    journal = read_journal(partial, _key(config, [stat_file(file) for file in files], None))
    if journal is None or not journal.tokenizer_hash:
        return None
    return Tokenizer.load(partial / "tokenizer")


def begin_vocabulary(config: PretrainRecipe, files: Sequence[CorpusFile], report: Report) -> Tokenizer:
    """Train the vocabulary and keep it for the store's build. Raises `UserError` as `prepare_store` does."""
    partial = partial_of(config)
    with store_disk_errors(partial), lock_folder(partial):
        return begin_build(config, files, report).tokenizer


def store_disk_errors(folder: Path) -> AbstractContextManager[None]:
    """Turn a full or read-only disk into a `UserError`; `folder` is that of the store."""
    return disk_errors(
        f"{folder}: the token store cannot be written",
        if_full="and run the command again: it resumes from here. Or name a folder elsewhere in corpus.store",
        if_refused="name one that can be written in output_dir or corpus.store",
    )


def begin_build(config: PretrainRecipe, files: Sequence[CorpusFile], report: Report) -> Plan:
    """Plan a build. Train the vocabulary if needed, and remove an interrupted build of something else."""
    corpus, partial = config.corpus, partial_of(config)
    records = [stat_file(file) for file in files]
    given = load_given_tokenizer(config)
    key = _key(config, records, given)
    for note in corpus_notes(files, corpus, report):
        report(note)
    journal = read_journal(partial, key)
    if journal is None:
        # The journal goes first: after a kill, it must not count what is gone.
        remove_content(partial, {JOURNAL: -1}, keep=LOCK)
        journal = Journal(key, BuildProgress.begin(corpus.num_sources))
        write_journal(partial, journal)
    elif journal.tokenizer_hash:
        begun = journal.progress != BuildProgress.begin(corpus.num_sources)
        report(f"{'resuming the interrupted build' if begun else 'taking the vocabulary'} in {partial}")

    if journal.tokenizer_hash:
        tokenizer = Tokenizer.load(partial / "tokenizer")
    else:
        tokenizer = given or train_on_corpus(
            files,
            corpus,
            config.tokenizer,
            report=report,
            model_type=config.model.fresh.family.model_type,
            spool_folder=partial,
        )
        tokenizer = tokenizer.save(partial / "tokenizer")
        journal.tokenizer_hash = tokenizer.hash
        write_journal(partial, journal)
    return Plan(config, partial, files, records=records, key=key, tokenizer=tokenizer)


def _key(config: PretrainConfig, records: Sequence[FileRecord], given: Tokenizer | None) -> dict[str, Any]:
    return {
        "version": FORMAT_VERSION,
        "options": store_options(config),
        "files": [asdict(record) for record in records],
        "tokenizer": None if given is None else given.hash,
    }
