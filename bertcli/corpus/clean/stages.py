"""The stages of `bertcli clean`, each a function of its folder and the number of a file or shard."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.corpus.clean.copies import BANDS, Printer, candidates, first_with, near_copies
from bertcli.corpus.clean.folder import (
    COLUMNS,
    RULES,
    Document,
    Plan,
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
from bertcli.corpus.engines import Stage

SHARD_BYTES = 256_000_000
"""Bytes of text in a shard."""
_EXAMPLES = 5
_PARTS = 16


def mend_file(folder: Path, file: int) -> None:
    """Read and mend a file; note the lines at the edges of its documents."""
    plan, hashes = plan_of(folder), [np.zeros(0, np.uint64)]
    name = f"{file:05}"
    if (folder / "mended" / f"{name}.lines.npy").exists():
        return
    examples: list[dict[str, Any]] = []
    with lines_out(folder / "mended" / f"{name}.jsonl.zst") as out:
        for document in _read(plan, file, examples):
            out.write(json.dumps(document, ensure_ascii=False).encode() + b"\n")
            hashes.append(np.array(sorted({line_hash(line) for line in edges(document.lines)}), np.uint64))
    write_json(folder / "mended" / f"{name}.examples.json", examples)
    write_array(folder / "mended" / f"{name}.lines.npy", np.concatenate(hashes))


def _read(plan: Plan, file: int, examples: list[dict[str, Any]]) -> Iterator[Document]:
    path, source = plan.files[file]
    number, lines, changed = 1, list[str](), 0
    for paragraph in read_paragraphs(Path(path), plan.corpus.of(source)):
        if paragraph is None:
            yield Document(number, lines, changed)
            number, lines, changed = number + 1, [], 0
            continue
        line = mended(paragraph) if plan.clean.mend else paragraph
        if line != paragraph:
            changed += 1
            if len(examples) < _EXAMPLES:
                where = next(at for at in range(len(paragraph)) if paragraph[at] != line[at : at + 1])
                part = slice(max(0, where - 30), where + 50)
                examples.append(
                    {"file": path, "document": number, "before": paragraph[part], "after": line[part]}
                )
        if line:
            lines.append(line)


def count_lines(folder: Path, _: int) -> None:
    """Find the lines that many documents of a source share."""
    plan = plan_of(folder)
    shared: list[list[int]] = [[] for _ in range(plan.corpus.num_sources)]
    for source in range(plan.corpus.num_sources):
        if plan.clean.shared_lines is None:
            continue
        arrays = [
            np.load(folder / "mended" / f"{file:05}.lines.npy", mmap_mode="r")
            for file, (_, own) in enumerate(plan.files)
            if own == source
        ]
        for part in range(_PARTS):  # memory holds a sixteenth of all lines
            some = [array[array >> np.uint64(60) == np.uint64(part)] for array in arrays]
            hashes, counts = np.unique(np.concatenate(some), return_counts=True)
            shared[source] += hashes[counts >= plan.clean.shared_lines].tolist()
    write_json(folder / "shared.json", shared)


def judge_file(folder: Path, file: int) -> None:
    """Apply the rules for one document to those of a file, and print those that stay."""
    if (folder / "judged" / f"{file:05}.npz").exists():
        return
    plan, printer = plan_of(folder), Printer()
    source = plan.files[file][1]
    language, of_rule = plan.corpus.of(source).language, dict[Rule, list[dict[str, Any]]]()
    rows: list[tuple[int, ...]] = []
    bands, runs = [np.zeros((0, BANDS), np.uint64)], [np.zeros(0, np.uint32)]
    for document, lines in documents(folder, file):
        words = words_of("\n".join(lines))
        rule = reason_against(lines, words, language, keys=plan.clean)
        content, number_of_runs = 0, 0
        if rule is None and words and (plan.clean.copies or plan.clean.near_copies):
            print_ = printer(words)
            content, number_of_runs = print_.content, len(print_.runs)
            bands.append(print_.bands[None])
            runs.append(print_.runs)
        else:
            bands.append(np.zeros((1, BANDS), np.uint64))
        removed = len(document.lines) - len(lines)
        noted: Rule | None = rule or ("shared_lines" if removed else None)
        if noted is not None:
            text = lines if rule else [line for line in document.lines if line not in set(lines)]
            _note(of_rule.setdefault(noted, []), plan.files[file][0], document.number, lines=text)
        number = 0 if rule is None else RULES.index(rule) + 1
        size = sum(len(line.encode()) + 1 for line in lines)
        rows.append((number, content, number_of_runs, size, removed, document.mended))
    write_json(folder / "judged" / f"{file:05}.examples.json", of_rule)
    columns = np.array(rows, np.uint64).reshape(-1, len(COLUMNS))
    write_arrays(
        folder / "judged" / f"{file:05}.npz",
        columns=columns,
        bands=np.concatenate(bands),
        runs=np.concatenate(runs),
    )


def _note(examples: list[dict[str, Any]], path: str, number: int, lines: Sequence[str]) -> None:
    if len(examples) < _EXAMPLES:
        examples.append({"file": path, "document": number, "text": " / ".join(lines)[:200]})


class _Runs(Sequence[NDArray[np.uint32]]):
    """The runs of all documents, which stay on the disk."""

    def __init__(self, judged: Sequence[Any], starts: NDArray[np.int64]) -> None:
        self._files = [each["runs"] for each in judged]
        self._ends = [np.cumsum(each["columns"][:, 2].astype(np.int64)) for each in judged]
        self._starts = starts

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getitem__(self, document: Any) -> Any:
        file = int(np.searchsorted(self._starts, document, side="right")) - 1
        own = document - int(self._starts[file])
        end = int(self._ends[file][own])
        return self._files[file][(int(self._ends[file][own - 1]) if own else 0) : end]


def decide(folder: Path, _: int) -> None:
    """Choose the documents that stay: of copies, the first by source, file and place."""
    plan = plan_of(folder)
    judged = [np.load(folder / "judged" / f"{file:05}.npz") for file in range(len(plan.files))]
    columns = np.concatenate([each["columns"] for each in judged])
    starts = np.cumsum([0, *(len(each["columns"]) for each in judged)])
    rules, kept = columns[:, 0].astype(np.uint8), np.arange(len(columns))
    similar = np.zeros(len(columns))
    stays = np.flatnonzero(rules == 0)
    if plan.clean.copies:
        first = stays[first_with(columns[stays, 1])]
        again = first != stays
        rules[stays[again]], kept[stays[again]] = RULES.index("copies") + 1, first[again]
        similar[stays[again]] = 1.0
        stays = stays[~again]
    if plan.clean.near_copies is not None:
        bands = (np.concatenate([each["bands"][:, band] for each in judged])[stays] for band in range(BANDS))
        runs = _Runs(judged, starts)
        own: Any = _Chosen(runs, stays)
        for near in near_copies(candidates(bands), own, plan.clean.near_copies):
            document = stays[near.document]
            rules[document], kept[document] = RULES.index("near_copies") + 1, stays[near.kept]
            similar[document] = near.similarity
    sizes = np.where(rules == 0, columns[:, 3], 0).astype(np.int64)
    write_arrays(folder / "decided.npz", rules=rules, kept=kept, similar=similar, starts=starts, sizes=sizes)


@dataclass(frozen=True)
class _Chosen:
    runs: _Runs
    numbers: NDArray[np.int64]

    def __getitem__(self, number: int) -> Any:
        return self.runs[int(self.numbers[number])]


class Shard(NamedTuple):
    """A shard: its file name, and the first document of all and the one after the last."""

    name: str
    first: int
    last: int


def shards(folder: Path) -> list[Shard]:
    """The shards; a shard holds one source, and about `SHARD_BYTES` of text."""
    plan, decided = plan_of(folder), np.load(folder / "decided.npz")
    starts, ends = decided["starts"], np.cumsum(decided["sizes"])
    sources = np.array([source for _, source in plan.files])
    found: list[Shard] = []
    for source, name in enumerate(plan.corpus.source_names):
        files = np.flatnonzero(sources == source)
        first, last, number = int(starts[files[0]]), int(starts[files[-1] + 1]), 0
        part = f"{name}/" if plan.corpus.sources else ""
        while first < last:
            before = int(ends[first - 1]) if first else 0
            end = min(last, int(np.searchsorted(ends, before + SHARD_BYTES, side="right")) or 1)
            end = max(end, first + 1)
            found.append(Shard(f"{part}{number:05}.jsonl.zst", first, end))
            first, number = end, number + 1
    return found


def write_shard(folder: Path, number: int) -> None:
    """Write what stays of a shard's documents, each with where it came from."""
    shard, plan, decided = shards(folder)[number], plan_of(folder), np.load(folder / "decided.npz")
    path = folder / "text" / shard.name
    if path.exists():
        return
    rules, starts = decided["rules"], decided["starts"]
    names = plan.corpus.source_names
    with lines_out(path) as out:
        for file, (name, source) in enumerate(plan.files):
            begin = int(starts[file])
            if begin >= shard.last or int(starts[file + 1]) <= shard.first:
                continue
            for place, (document, lines) in enumerate(documents(folder, file), start=begin):
                if shard.first <= place < shard.last and rules[place] == 0:
                    came = {"source": names[source], "file": name, "document": document.number}
                    value = {"text": "\n".join(lines), **came}
                    out.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")


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
    Stage("writing", num_shards, write_shard),
)
