"""The folder of a cleaning: its plan, and the files that its stages leave to the next ones.

    folder/plan.json                the corpus, the rules, the files with their sizes and times
           mended/00012.jsonl.zst   the documents of file 12: their lines, mended
           mended/00012.lines.npy   uint64 [2, lines]: hashes of the lines at their edges, each once a
                                    document, and of the document
           shared.json              source -> hashes of lines that many documents share
           judged/00012.npy         `COLUMNS` of each document
           judged/00012.bands.npy   uint64 [BANDS, documents], and .shingles.npy: those of all documents
           decided.npz              for each document: the rule against it, and whose copy it is
           text/00003.jsonl.zst     what stays, in shards

A file gets its name when it is complete.
"""

import io
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from bertcli.config.corpus import CleanConfig, CorpusConfig
from bertcli.corpus.clean.copies import hash64
from bertcli.corpus.clean.rules import EDGE, Rule, without_shared
from bertcli.corpus.streams import import_extra
from bertcli.system.remote import InputPath, RemotePath, Status
from bertcli.system.urls import is_remote

CODES: dict[Rule, int] = {rule: number for number, rule in enumerate(get_args(Rule), start=1)}
"""Rule -> its code in arrays, in their order; 0 means that a document stays."""
COLUMNS = ("rule", "content", "shingles", "bytes", "removed", "mended")
"""What `judged` has of a document: the code of the rule against it, the hash of its words, the number of its
shingles, the size of its text without removed lines, and the numbers of removed and of mended lines."""
PLAN = "plan.json"
_MAKERS = ("bertcli", "ftfy", "py3langid")
"""Packages whose version decides the cleaned text."""
_UNREAD = {
    "store": True,
    "general": True,
    "heldout_fraction": True,
    "temperature": True,
    "sources": {"__all__": {"weight"}},
}
"""Keys of the corpus that do not."""
_LEVEL = 3
"""Effort of Zstandard."""


class PlannedFile(NamedTuple):
    """A file of the corpus, with the number of its source; a work on another size or time is another work."""

    path: str
    source: int
    size: int
    mtime_ns: int

    @property
    def input(self) -> InputPath:
        """The file; one elsewhere in the version of the plan."""
        if is_remote(self.path):
            return RemotePath(self.path, Status(self.size, self.mtime_ns))
        return Path(self.path)


@dataclass(frozen=True)
class Plan:
    """The content of `plan.json`: what decides the cleaned text."""

    corpus: CorpusConfig
    clean: CleanConfig
    files: Sequence[PlannedFile]

    def text(self) -> str:
        """The content of the file."""
        made_by = {name: version(name) for name in _MAKERS if find_spec(name)}
        corpus = self.corpus.model_dump(mode="json", exclude=_UNREAD)
        clean = self.clean.model_dump(mode="json")
        return json.dumps({"made_by": made_by, "corpus": corpus, "clean": clean, "files": self.files})


def plan_of(folder: Path) -> Plan:
    """The plan in a folder."""
    return _parsed_plan((folder / PLAN).read_text(encoding="utf-8"))


@lru_cache(maxsize=1)  # all work on a folder asks for its plan, which may name 100,000 files
def _parsed_plan(text: str) -> Plan:
    value = json.loads(text)
    return Plan(
        CorpusConfig.model_validate(value["corpus"]),
        CleanConfig.model_validate(value["clean"]),
        [PlannedFile(*file) for file in value["files"]],
    )


def columns_of(folder: Path) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """`COLUMNS` of the documents of all files, and the number of the first document of each, then the end."""
    columns = [np.load(folder / "judged" / f"{file:05}.npy") for file in range(len(plan_of(folder).files))]
    return np.concatenate(columns), np.cumsum([0, *map(len, columns)])


def column(columns: NDArray[np.uint64], name: str) -> NDArray[np.int64]:
    """A column by its name."""
    return columns[:, COLUMNS.index(name)].astype(np.int64)


class Document(NamedTuple):
    """A document between the stages: its number in the file from 1, its lines, and how many were mended."""

    number: int
    lines: list[str]
    mended: int


def edges(lines: Sequence[str]) -> Sequence[str]:
    """The lines at the beginning and at the end."""
    return lines if len(lines) <= 2 * EDGE else [*lines[:EDGE], *lines[-EDGE:]]


def line_hash(line: str) -> int:
    """A 64-bit hash of a line, in which case and blanks do not count."""
    return hash64(" ".join(line.lower().split()).encode())


def documents(folder: Path, file: int, first: int = 0) -> Iterator[tuple[Document, list[str]]]:
    """The documents of a mended file from the one with the index `first` on, each with the lines that
    stay."""
    shared = _parsed_shared((folder / "shared.json").read_text(encoding="utf-8"))[
        plan_of(folder).files[file].source
    ]
    for document in read_documents(folder, file, first):
        lines = document.lines
        if shared:
            at_edges = {line for line in edges(lines) if line_hash(line) in shared}
            lines = without_shared(lines, [line in at_edges for line in lines])
        yield document, lines


@lru_cache(maxsize=1)
def _parsed_shared(text: str) -> list[set[int]]:
    return [set(hashes) for hashes in json.loads(text)]


def read_documents(folder: Path, file: int, first: int = 0) -> Iterator[Document]:
    """The documents of a mended file from the one with the index `first` on."""
    zstd = import_extra("zstandard", "scale", "the work is kept in .zst")
    with open(folder / "mended" / f"{file:05}.jsonl.zst", "rb") as packed:
        lines = io.BufferedReader(zstd.ZstdDecompressor().stream_reader(packed))
        for line in itertools.islice(lines, first, None):
            yield Document(*json.loads(line))


@contextmanager
def lines_out(path: Path) -> Iterator[Any]:
    """A compressed file that gets its name when it is complete."""
    zstd = import_extra("zstandard", "scale", "the text is written as .zst")
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    with open(new, "wb") as file, zstd.ZstdCompressor(_LEVEL).stream_writer(file) as out:
        yield out
    os.replace(new, path)


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array as .npy."""
    data = io.BytesIO()
    np.save(data, array)
    _write_bytes(path, data.getvalue())


def write_arrays(path: Path, **arrays: NDArray[Any]) -> None:
    """Write arrays as .npz."""
    data = io.BytesIO()
    np.savez(data, allow_pickle=False, **arrays)
    _write_bytes(path, data.getvalue())


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON."""
    _write_bytes(path, json.dumps(value, ensure_ascii=False).encode())


def _write_bytes(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.write_bytes(data)
    os.replace(new, path)
