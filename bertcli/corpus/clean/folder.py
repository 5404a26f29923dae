"""The folder of a cleaning: its plan, and the files that its stages leave to the next ones.

    folder/plan.json                the corpus, the rules, the files
           mended/00012.jsonl.zst   the documents of file 12: their lines, mended
           mended/00012.lines.npy   hashes of the lines at their edges, each once a document
           shared.json              source -> hashes of lines that many documents share
           judged/00012.npz         for each document: the rule against it, its size and print
           decided.npz              for each document: the rule against it, and whose copy it is
           text/00003.jsonl.zst     what stays, in shards

A file gets its name when it is complete.
"""

import hashlib
import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.config.clean import CleanConfig
from bertcli.config.corpus import CorpusConfig
from bertcli.corpus.clean.rules import EDGE, Rule, without_shared
from bertcli.corpus.streams import import_extra

RULES: tuple[Rule, ...] = (
    *("mend", "shared_lines", "fewest_words", "repetition", "language", "copies", "near_copies"),
)
"""The rules in their order; in arrays, rule n is n + 1, and 0 means that a document stays."""
COLUMNS = ("rule", "content", "runs", "bytes", "removed", "mended")
"""What `judged` has of a document: the rule against it, its print, the size of what stays, removed and mended
lines."""
_LEVEL = 3
"""Effort of Zstandard."""


@dataclass(frozen=True)
class Plan:
    """The content of `plan.json`.

    Attributes:
        files: path and source of each file, in order.
    """

    corpus: CorpusConfig
    clean: CleanConfig
    files: Sequence[tuple[str, int]]

    def save(self, folder: Path) -> None:
        """Write it."""
        value = {
            "corpus": self.corpus.model_dump(mode="json"),
            "clean": self.clean.model_dump(mode="json"),
            "files": self.files,
        }
        (folder / "plan.json").write_text(json.dumps(value), encoding="utf-8")


def plan_of(folder: Path) -> Plan:
    """The plan in a folder."""
    value = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    files = [(path, source) for path, source in value["files"]]
    return Plan(
        CorpusConfig.model_validate(value["corpus"]), CleanConfig.model_validate(value["clean"]), files
    )


class Document(NamedTuple):
    """A document between the stages: its number in the file from 1, its lines, and how many were mended."""

    number: int
    lines: list[str]
    mended: int


def edges(lines: Sequence[str]) -> Sequence[str]:
    return lines if len(lines) <= 2 * EDGE else [*lines[:EDGE], *lines[-EDGE:]]


def line_hash(line: str) -> int:
    key = " ".join(line.lower().split())
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")


def _shared(folder: Path) -> list[set[int]]:
    return [set(hashes) for hashes in json.loads((folder / "shared.json").read_text(encoding="utf-8"))]


def documents(folder: Path, file: int) -> Iterator[tuple[Document, list[str]]]:
    """The documents of a mended file, each with the lines that stay."""
    plan = plan_of(folder)
    shared = _shared(folder)[plan.files[file][1]]
    for document in read_documents(folder, file):
        lines = document.lines
        if shared:
            at_edges = {line for line in edges(lines) if line_hash(line) in shared}
            lines = without_shared(lines, [line in at_edges for line in lines])
        yield document, lines


def read_documents(folder: Path, file: int) -> Iterator[Document]:
    """The documents of a mended file."""
    zstd = import_extra("zstandard", "scale", "the work is kept in .zst")
    with open(folder / "mended" / f"{file:05}.jsonl.zst", "rb") as packed:
        for line in io.TextIOWrapper(zstd.ZstdDecompressor().stream_reader(packed), encoding="utf-8"):
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
    data = io.BytesIO()
    np.save(data, array)
    _write_bytes(path, data.getvalue())


def write_arrays(path: Path, **arrays: NDArray[Any]) -> None:
    data = io.BytesIO()
    np.savez(data, allow_pickle=False, **arrays)
    _write_bytes(path, data.getvalue())


def write_json(path: Path, value: Any) -> None:
    _write_bytes(path, json.dumps(value, ensure_ascii=False).encode())


def _write_bytes(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.write_bytes(data)
    os.replace(new, path)
