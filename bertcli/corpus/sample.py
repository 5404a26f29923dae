"""A part of a corpus -> a sample for a vocabulary, the estimated size of the corpus, and advice on layout."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from bertcli.config.corpus import CorpusConfig
from bertcli.corpus.documents import read_paragraphs
from bertcli.corpus.files import CorpusFile, by_source
from bertcli.corpus.streams import Progress, read_lines, silent
from bertcli.system.errors import Finding, UserError

SAMPLE_BYTES = 256_000_000
"""The approximate bytes of the sample, in UTF-8; it never has more than twice as many."""


def sample_share(files: Sequence[CorpusFile], num_bytes: int = SAMPLE_BYTES) -> float:
    """The share of paragraphs to take; 1 for a corpus of up to `num_bytes`, estimated by file size."""
    return min(1.0, num_bytes / max(1, text_bytes(files)))


def sample_rates(files: Sequence[CorpusFile], corpus: CorpusConfig) -> list[float]:
    """How often the sample takes each paragraph of each source: it has the shares of a run's first step."""
    sizes = [text_bytes(own) for own, _ in by_source(files, corpus)]
    total = min(sum(sizes), SAMPLE_BYTES)
    shares = corpus.shares(sizes, step=0, ramp_steps=1)
    return [round(share * total / max(1, size), 9) for share, size in zip(shares, sizes, strict=True)]


def sample_paragraphs(
    files: Sequence[CorpusFile], corpus: CorpusConfig, rates: Sequence[float], progress: Progress = silent
) -> Iterator[str]:
    """The paragraphs, each as often as the rate of its source says.

    With a rate of 0.3, a paragraph is taken if its hash (BLAKE2b, 64 bits) is in the first 0.3 of its range,
    with 1.3 once more then. The choice depends only on a paragraph's text, so that the sample is spread
    evenly over the corpus and is the same each time.
    """
    taken = 0
    for file in files:
        times, part = divmod(rates[file.source], 1.0)
        limit = int(part * 2**64)
        for paragraph in read_paragraphs(file.path, corpus.of(file.source), progress):
            if paragraph is None:
                continue
            data = paragraph.encode()
            is_more = limit > 0 and int.from_bytes(hashlib.blake2b(data, digest_size=8).digest()) < limit
            for _ in range(int(times) + is_more):
                taken += len(data)
                if taken > 2 * SAMPLE_BYTES:
                    return
                yield paragraph


COMPRESSION = 4
"""The approximate bytes of text per byte of .gz, .zst or Parquet."""
_COMPRESSED = (".gz", ".zst", ".parquet")
_MOST_CHARACTERS = 4_000_000
"""The most characters that are read, in all files together."""
_MOST_FILES = 100
"""The approximate number of files that are read, evenly spaced."""
_COVERED = 0.999
"""The share of the text to cover; the remaining, rarest characters are stray signs of other scripts."""


def text_bytes(files: Sequence[CorpusFile]) -> float:
    """The bytes of text, estimated by file size; the size of a compressed file counts `COMPRESSION` times."""
    return float(sum(s.size * (COMPRESSION if s.path.suffix in _COMPRESSED else 1) for s in files))


def count_characters(files: Sequence[CorpusFile], corpus: CorpusConfig) -> tuple[int, int]:
    """The least number of distinct characters that cover 99.9 % of the text, and the number of all.

    Only the beginnings of the files are read. Thousands mean a script with a sign for each word or syllable.
    Unreadable files are skipped; the build of the store reports them.
    """
    chosen = files[:: max(1, len(files) // _MOST_FILES)]
    counts: Counter[str] = Counter()
    for file in chosen:
        left = _MOST_CHARACTERS // len(chosen)
        try:
            for paragraph in read_paragraphs(file.path, corpus.of(file.source)):
                counts.update((paragraph or "").casefold())
                left -= len(paragraph or "")
                if left <= 0:
                    break
        except UserError:
            continue
    covered = accumulate(count for _, count in counts.most_common())
    needed = sum(so_far < _COVERED * counts.total() for so_far in covered) + bool(counts)
    return needed, len(counts)


FILES, LINES, CHARACTERS = 12, 2000, 200_000
"""The most files, evenly chosen, and the most lines and characters that are read of each."""
FEWEST_PAIRS = 20
"""The fewest pairs of consecutive lines within paragraphs that count as evidence."""
_WIDTHS = range(30, 141)
"""The columns where people and programs wrap text."""
_FILLED, _UNFINISHED, _SMALL = 0.6, 0.6, 0.4
"""Least shares of pairs of lines in wrapped text: the first line has no room for the next word; it does not
end a sentence; the next line begins with a small letter (counted only if that letter has a case)."""
_ENDS = tuple(".!?…:;。！？।۔؟።။”\"'»’)")
FEW_BLANKS = 0.04
"""Blanks per character. Text with fewer has no blanks between words, so it fills lines to the last column."""
LONE_PARAGRAPHS = 0.8
"""The least share of one-line documents in a file of lone paragraphs."""
_FEWEST_DOCUMENTS = 20
"""The fewest documents in a file that count as evidence."""


def layout_advice(files: Sequence[CorpusFile], corpus: CorpusConfig) -> list[Finding]:
    """Advice if files contradict `corpus.document`, `join_lines` or `format`; at most one piece a source.

    Its `share` is the share of the source's files, among those that were read, that have this problem.
    """
    found: list[Finding] = []
    for name, (own, source) in zip(corpus.source_names, by_source(files, corpus), strict=True):
        where = f"source {name}: " if corpus.sources else ""
        found += [replace(each, problem=f"{where}{each.problem}") for each in _layout_advice(own, source)]
    return found


def _layout_advice(files: Sequence[CorpusFile], corpus: CorpusConfig) -> list[Finding]:
    if corpus.format not in ("text", "sentences") or corpus.join_lines:
        return []
    looks = look_at_files(files, corpus)
    wrapped = wrapped_files(looks)
    if wrapped:
        return [_wrapped_advice(wrapped, len(looks), len(files), corpus=corpus)]
    lone = [look for look in looks if look.is_lone_paragraphs]
    by_blank_lines = corpus.format == "text" and corpus.document == "blank-line"
    if not by_blank_lines or len(files) == 1 or 2 * len(lone) <= len(looks):
        return []
    return [
        Finding(
            f"blank lines separate single paragraphs in {len(lone)} of {len(looks)} files examined: each "
            "paragraph is read as a document of its own",
            "if a file is a document (a book, an article), set corpus.document: file",
            share=len(lone) / len(looks),
        )
    ]


def look_at_files(files: Sequence[CorpusFile], corpus: CorpusConfig) -> list[Look]:
    """The layout of some of the files, evenly chosen."""
    step = max(1, len(files) // FILES)
    return [Look.at(list(_first_lines(file, corpus))) for file in files[::step][:FILES]]


def wrapped_files(looks: Sequence[Look]) -> list[Look]:
    """The files with hard-wrapped lines, if they have at least half of all lines; else none."""
    wrapped = [look for look in looks if look.width]
    is_most = 2 * sum(look.lines for look in wrapped) >= sum(look.lines for look in looks)
    return wrapped if is_most else []


def _wrapped_advice(wrapped: Sequence[Look], examined: int, number: int, corpus: CorpusConfig) -> Finding:
    width = max(look.width for look in wrapped)
    keys = ["corpus.join_lines: true"]
    if corpus.format != "text":
        keys.insert(0, "corpus.format: text")
    if corpus.document != "file":
        keys.append("corpus.document: file (a blank line then ends a paragraph)")
    alone = "" if number > 1 else "; sentence pairs then need more files than one, each a document"
    return Finding(
        f"the text is hard-wrapped at about {width} characters in {len(wrapped)} of {examined} files "
        "examined: each line is read as a paragraph, and sentences are cut at its end",
        f"set {' and '.join(keys)}{alone}",
        share=len(wrapped) / examined,
    )


def _first_lines(file: CorpusFile, corpus: CorpusConfig) -> Iterator[str]:
    left = CHARACTERS
    try:
        for line in itertools.islice(
            read_lines(file.path, corpus.of(file.source).decoding(file.path)), LINES
        ):
            yield line.strip()
            left -= len(line)
            if left < 0:
                return
    except UserError:  # reading all of the file reports it, with the place
        return


@dataclass(frozen=True)
class Look:
    """The layout of the first lines of a file.

    Attributes:
        lines: the number of lines that are not blank.
        documents: the number of groups of lines between blank lines.
        width: the column where lines are wrapped; 0 if they are not wrapped.
        is_lone_paragraphs: true if most groups of lines between blank lines are a single line.
    """

    lines: int
    documents: int
    width: int
    is_lone_paragraphs: bool

    @classmethod
    def at(cls, lines: Sequence[str]) -> Look:
        full = [line for line in lines if line]
        documents = [
            sum(1 for _ in group) for is_text, group in itertools.groupby(lines, key=bool) if is_text
        ]
        is_lone = len(documents) >= _FEWEST_DOCUMENTS and (
            documents.count(1) >= LONE_PARAGRAPHS * len(documents)
        )
        return cls(len(full), len(documents), _wrap_column(lines, full), is_lone_paragraphs=is_lone)


def _wrap_column(lines: Sequence[str], full: Sequence[str]) -> int:
    """The column where the lines are wrapped; 0 if they are not wrapped."""
    pairs = [(a, b) for a, b in itertools.pairwise(lines) if a and b]
    if len(pairs) < FEWEST_PAIRS:
        return 0
    width = sorted(map(len, full))[len(full) * 98 // 100]
    if width not in _WIDTHS:
        return 0
    has_blanks = sum(a.count(" ") for a, _ in pairs) >= FEW_BLANKS * sum(len(a) for a, _ in pairs)
    filled = sum(
        len(a) + 1 + len(b.partition(" ")[0]) > width if has_blanks else len(a) >= 0.9 * width
        for a, b in pairs
    )
    unfinished = sum(not a.endswith(_ENDS) for a, _ in pairs)
    first = [b[0] for _, b in pairs if b[0].islower() or b[0].isupper()]
    small = sum(letter.islower() for letter in first)
    is_wrapped = (
        filled >= _FILLED * len(pairs)
        and unfinished >= _UNFINISHED * len(pairs)
        and small >= _SMALL * len(first)
    )
    return width if is_wrapped else 0
