"""The stages of `bertcli clean`, each a function of its folder and the number of a file or shard."""

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.corpus.clean.copies import BANDS, Signature, Signer, candidates, first_with, near_copies
from bertcli.corpus.clean.folder import (
    CODES,
    COLUMNS,
    Document,
    Plan,
    column,
    columns_of,
    documents,
    edges,
    line_hash,
    lines_out,
    plan_of,
    write_array,
    write_arrays,
    write_json,
)
from bertcli.corpus.clean.rules import Rule, mended, reason_against, words_of
from bertcli.corpus.documents import read_paragraphs
from bertcli.corpus.pieces import Stage
from bertcli.system.errors import UserError
from bertcli.system.remote import current

SHARD_BYTES = 256_000_000
"""Bytes of text in a shard."""
TEXT = "text"
"""The folder of the shards."""
EXAMPLES = 5
"""The most examples of a rule."""
_PARTS = 16
_OPEN = 64
"""The most files that are open at a time."""
_ODD = np.uint64(0x9E3779B97F4A7C15)


def mend_file(folder: Path, file: int) -> None:
    """Read and mend a file; note the lines at the edges of its documents."""
    plan, hashes = plan_of(folder), [np.zeros((2, 0), np.uint64)]
    name = f"{file:05}"
    if (folder / "mended" / f"{name}.lines.npy").exists():
        return
    examples: list[dict[str, Any]] = []
    with lines_out(folder / "mended" / f"{name}.jsonl.zst") as out:
        for document in _read(plan, file, examples):
            out.write(json.dumps(document, ensure_ascii=False).encode() + b"\n")
            at_edges = sorted({line_hash(line) for line in edges(document.lines)})
            own = line_hash(" ".join(document.lines))
            hashes.append(np.array([at_edges, [own] * len(at_edges)], np.uint64))
    write_json(folder / "mended" / f"{name}.examples.json", examples)
    write_array(folder / "mended" / f"{name}.lines.npy", np.concatenate(hashes, axis=1))


def _read(plan: Plan, file: int, examples: list[dict[str, Any]]) -> Iterator[Document]:
    planned = plan.files[file]
    number, lines, changed = 1, list[str](), 0
    for paragraph in read_paragraphs(planned.input, plan.corpus.of(planned.source)):
        if paragraph is None:
            yield Document(number, lines, changed)
            number, lines, changed = number + 1, [], 0
            continue
        line = mended(paragraph) if plan.clean.mend else paragraph
        if line != paragraph:
            changed += 1
            if len(examples) < EXAMPLES:
                where = next(at for at in range(len(paragraph)) if paragraph[at] != line[at : at + 1])
                part = slice(max(0, where - 30), where + 50)
                examples.append(
                    {"file": planned.path, "document": number, "before": paragraph[part], "after": line[part]}
                )
        if line:
            lines.append(line)
    now = current(planned.input).stat()
    if (now.st_size, now.st_mtime_ns) != (planned.size, planned.mtime_ns):
        raise UserError(f"{planned.path}: the file changed while it was read; run the command again")


def count_lines(folder: Path, _: int) -> None:
    """Find the lines that many documents of a source share."""
    if (folder / "shared.json").exists():
        return
    plan = plan_of(folder)
    shared: list[list[int]] = [[] for _ in range(plan.corpus.num_sources)]
    for source in range(plan.corpus.num_sources):
        if plan.clean.shared_lines is None:
            continue
        own = [file for file, planned in enumerate(plan.files) if planned.source == source]
        for part in range(_PARTS):  # memory holds a sixteenth of all lines
            lines, owners = np.concatenate([_some_lines(folder, file, part) for file in own], axis=1)
            # Copies of a document count once: else a page that occurs often would share all of its lines.
            once = np.unique(lines * _ODD + owners, return_index=True)[1]  # modulo 2^64
            hashes, counts = np.unique(lines[once], return_counts=True)
            shared[source] += hashes[counts >= plan.clean.shared_lines].tolist()
    write_json(folder / "shared.json", shared)


def _some_lines(folder: Path, file: int, part: int) -> NDArray[np.uint64]:
    """One part of `_PARTS` of a file's lines. The file is closed: a corpus may have more than may be open."""
    array = np.load(folder / "mended" / f"{file:05}.lines.npy", mmap_mode="r")
    return array[:, array[0] >> np.uint64(60) == np.uint64(part)]


def judge_file(folder: Path, file: int) -> None:
    """Apply the rules for one document to those of a file, and sign those that stay."""
    name = f"{file:05}"
    if (folder / "judged" / f"{name}.npy").exists():
        return
    plan, sign = plan_of(folder), Signer()
    path, source, *_ = plan.files[file]
    language, examples = plan.corpus.of(source).language, dict[Rule, list[dict[str, Any]]]()
    rows: list[tuple[int, ...]] = []
    bands, shingles = [np.zeros((0, BANDS), np.uint64)], [np.zeros(0, np.uint32)]
    for document, lines in documents(folder, file):
        words = words_of("\n".join(lines))
        rule = reason_against(lines, words, language, keys=plan.clean)
        signature = (
            sign(words) if rule is None and words else Signature(0, shingles[0], np.zeros(BANDS, np.uint64))
        )
        bands.append(signature.bands[None])
        shingles.append(signature.shingles)
        removed = len(document.lines) - len(lines)
        noted: Rule | None = rule or ("shared_lines" if removed else None)
        if noted is not None and len(own := examples.setdefault(noted, [])) < EXAMPLES:
            stay = set() if rule else set(lines)
            text = [line for line in document.lines if line not in stay]
            own.append({"file": path, "document": document.number, "text": shown(text)})
        size = sum(len(line.encode()) + 1 for line in lines)
        code = 0 if rule is None else CODES[rule]
        rows.append((code, signature.content, len(signature.shingles), size, removed, document.mended))
    write_json(folder / "judged" / f"{name}.examples.json", examples)
    by_band = np.ascontiguousarray(np.concatenate(bands).T)  # `decide` reads one band after the other
    write_array(folder / "judged" / f"{name}.bands.npy", by_band)
    write_array(folder / "judged" / f"{name}.shingles.npy", np.concatenate(shingles))
    write_array(folder / "judged" / f"{name}.npy", np.array(rows, np.uint64).reshape(-1, len(COLUMNS)))


def shown(lines: Sequence[str]) -> str:
    """The beginning of a document, for an example."""
    return " / ".join(lines)[:200]


def decide(folder: Path, _: int) -> None:
    """Choose the documents that stay: of copies, the first by source, file and place."""
    if (folder / "decided.npz").exists():
        return
    plan = plan_of(folder)
    columns, starts = columns_of(folder)
    rules, kept, similar = column(columns, "rule"), np.arange(len(columns)), np.zeros(len(columns))
    # A document without a word is no copy of another.
    stays = np.flatnonzero((rules == 0) & (column(columns, "shingles") > 0))
    if plan.clean.copies:
        first = stays[first_with(columns[stays, COLUMNS.index("content")])]
        again = first != stays
        rules[stays[again]], kept[stays[again]] = CODES["copies"], first[again]
        similar[stays[again]] = 1.0
        stays = stays[~again]
    if plan.clean.near_copies is not None:
        pairs = candidates(_band(folder, band)[stays] for band in range(BANDS))
        shingles = _reader_of_shingles(folder, column(columns, "shingles"), starts)
        for near in near_copies(pairs, lambda number: shingles(stays[number]), plan.clean.near_copies):
            document = stays[near.document]
            rules[document], kept[document] = CODES["near_copies"], stays[near.kept]
            similar[document] = near.similarity
    # A copy of a near copy is shown beside the document that stays, with the similarity of the near copy.
    similar, kept = np.where(rules[kept] == 0, similar, similar[kept]), kept[kept]
    write_arrays(folder / "decided.npz", rules=rules, kept=kept, similar=similar)


def _band(folder: Path, band: int) -> NDArray[np.uint64]:
    """A band of the signature of each document; one file is open at a time."""
    paths = [folder / "judged" / f"{file:05}.bands.npy" for file in range(num_files(folder))]
    return np.concatenate([np.array(np.load(path, mmap_mode="r")[band]) for path in paths])


def _reader_of_shingles(
    folder: Path, numbers: NDArray[np.int64], starts: NDArray[np.int64]
) -> Callable[[int], NDArray[np.uint32]]:
    """A function that reads the shingles of a document from the disk; `numbers`: how many each has."""
    ends = np.concatenate([[0], np.cumsum(numbers)])

    @lru_cache(_OPEN)
    def array(file: int) -> NDArray[np.uint32]:
        return np.load(folder / "judged" / f"{file:05}.shingles.npy", mmap_mode="r")

    def read(document: int) -> NDArray[np.uint32]:
        file = int(np.searchsorted(starts, document, side="right")) - 1
        own = slice(ends[document] - ends[starts[file]], ends[document + 1] - ends[starts[file]])
        return np.array(array(file)[own])

    return read


class Shard(NamedTuple):
    """A shard: its file name, and the first document of all and the one after the last."""

    name: str
    first: int
    last: int


def shards(folder: Path) -> list[Shard]:
    """The shards; a shard holds one source, and about `SHARD_BYTES` of text."""
    plan, rules = plan_of(folder), np.load(folder / "decided.npz")["rules"]
    columns, starts = columns_of(folder)
    ends = np.cumsum(np.where(rules == 0, column(columns, "bytes"), 0))
    sources = np.array([file.source for file in plan.files])
    found: list[Shard] = []
    for source, name in enumerate(plan.corpus.source_names):
        files = np.flatnonzero(sources == source)
        first, last, number = int(starts[files[0]]), int(starts[files[-1] + 1]), 0
        part = f"{name}/" if plan.corpus.sources else ""
        while first < last:
            before = int(ends[first - 1]) if first else 0
            end = min(last, int(np.searchsorted(ends, before + SHARD_BYTES, side="right")))
            end = max(end, first + 1)
            found.append(Shard(f"{part}{number:05}.jsonl.zst", first, end))
            first, number = end, number + 1
    return found


def write_shard(folder: Path, number: int) -> None:
    """Write what stays of a shard's documents, each with where it came from."""
    shard, plan = shards(folder)[number], plan_of(folder)
    path = folder / TEXT / shard.name
    if path.exists():
        return
    rules, starts = np.load(folder / "decided.npz")["rules"], columns_of(folder)[1]
    names = plan.corpus.source_names
    with lines_out(path) as out:
        for file, (name, source, *_) in enumerate(plan.files):
            begin = int(starts[file])
            if begin >= shard.last or int(starts[file + 1]) <= shard.first:
                continue
            # Where the config names other encodings, ASCII reads right in them too.
            ascii_ = bool(plan.corpus.encodings) or plan.corpus.of(source).encoding != "utf-8"
            first = max(begin, shard.first)
            own = documents(folder, file, first - begin)
            for place, (document, lines) in enumerate(itertools.islice(own, shard.last - first), start=first):
                if rules[place] == 0:
                    came = {"source": names[source], "file": name, "document": document.number}
                    value = {"text": "\n".join(lines), **came}
                    out.write(json.dumps(value, ensure_ascii=ascii_).encode() + b"\n")


def num_files(folder: Path) -> int:
    """The number of files of the corpus."""
    return len(plan_of(folder).files)


def num_shards(folder: Path) -> int:
    """The number of shards."""
    return len(shards(folder))


def one(_: Path) -> int:
    """The number of pieces of a stage that is not divided."""
    return 1


STAGES = (
    Stage("reading and mending", num_files, mend_file),
    Stage("counting lines", one, count_lines),
    Stage("judging documents", num_files, judge_file),
    Stage("finding copies", one, decide),
    Stage("writing", num_shards, write_shard, counts_late=True),
)
