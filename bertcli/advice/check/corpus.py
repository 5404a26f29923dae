"""Counts of a corpus that is read once; they equal those of the store that `prepare` would build."""

from __future__ import annotations

import itertools
import struct
import tempfile
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from bertcli.advice.check import lines
from bertcli.advice.check.findings import Places, excerpt
from bertcli.advice.check.repeats import RepeatCounter
from bertcli.config.corpus import CorpusConfig
from bertcli.corpus.chunks import DocumentEnd, progress_display
from bertcli.corpus.files import CorpusFile
from bertcli.corpus.language import other_language
from bertcli.corpus.parts import cut_documents, cut_progress, is_cut
from bertcli.corpus.token_store import SIDES
from bertcli.corpus.writer import FEW_DOCUMENTS, BuildProgress, SourceProgress
from bertcli.system.errors import Finding
from bertcli.system.processes import in_processes
from bertcli.system.terminal import Report

SPOOL_BYTES = 32 << 20
"""Ids beyond this size go to a temporary file."""


class FewDocuments:
    """The hashes, ids and lengths of the stored documents, which are kept as long as they are few."""

    def __init__(self) -> None:
        self._ids = tempfile.SpooledTemporaryFile(SPOOL_BYTES)  # noqa: SIM115  (closed with the object)
        self._documents: list[list[int]] = []  # content hash and number of sentences of each
        self._lengths: list[NDArray[np.uint32]] = []
        self._open: list[NDArray[np.uint32]] = []
        self._end = 0

    @property
    def are_many(self) -> bool:
        """True if the corpus has enough documents to hold out some of them in full."""
        return len(self._documents) >= FEW_DOCUMENTS

    def add(self, ids: NDArray[np.uint32], lengths: NDArray[np.uint32]) -> None:
        """Add a piece of the open document."""
        if not self.are_many:
            self._ids.write(ids.astype(np.uint32, copy=False).tobytes())
            self._open.append(lengths)

    def end_document(self, content_hash: int, sentences: int) -> None:
        """End the open document. Once documents are many, nothing is kept."""
        if self.are_many:
            return
        self._documents.append([content_hash, sentences])
        self._lengths += self._open
        self._open, self._end = [], self._ids.tell()
        if self.are_many:
            self.close()
            self._lengths = []

    def close(self) -> None:
        """Close the temporary file."""
        self._ids.close()

    def drop_open(self) -> None:
        """Drop the open document: it has no token, or could not be read."""
        if self._open and not self.are_many:
            self._ids.seek(self._end)
            self._ids.truncate()
        self._open = []

    def cut(
        self, progress: SourceProgress, uses: NDArray[np.int64], heldout_fraction: float, tokenizes_all: bool
    ) -> SourceProgress:
        """The counts of each side of the source; its tokens are counted anew in `uses`.

        Unless `tokenizes_all`, all sampled tokens count as training tokens: their documents are not kept.
        """
        pieces = cut_documents(self._documents, heldout_fraction)
        if not tokenizes_all:
            uses[0] += uses[1]
            uses[1] = 0
            return cut_progress(progress, pieces, [0] * len(pieces))
        lengths = np.concatenate([np.zeros(0, np.uint32), *self._lengths])
        ends = np.cumsum([piece.end - piece.start for piece in pieces])
        bounds = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])[np.concatenate([[0], ends])]
        uses[:] = 0
        self._ids.seek(0)
        for piece, (start, end) in zip(pieces, itertools.pairwise(bounds.tolist()), strict=True):
            ids = np.frombuffer(self._ids.read((end - start) * 4), np.uint32)
            uses[SIDES.index(piece.side)] += np.bincount(ids, minlength=uses.shape[1])
        return cut_progress(progress, pieces, np.diff(bounds).tolist())


_OPEN = -1
"""The side of a document that has not ended yet."""


class CorpusCounts:
    """The content of a corpus, to which batches are added; a document may continue over several batches.

    Attributes:
        progress: counts of both sides, as a build of the store keeps them. Unless all text is tokenized, it
            counts no tokens, and assumes that every sentence has at least one.
        lines: number of paragraphs, or of sentences in Google's format.
        faults: kind of fault -> the lines that have it.
        identified, others: lines whose language was identified, and language -> lines that are likely in it
            and not in that of the corpus.
        uses: int64 [sources, 2, V]; how often each token occurs on each side of each source.
        moments: `TokenizedLines.moments` of all sampled lines.
        findings: findings about files and bytes that could not be read.
    """

    def __init__(self, files: Sequence[CorpusFile], corpus: CorpusConfig, what: lines.Examination):
        self.progress, self.lines = BuildProgress.begin(corpus.num_sources), 0
        self.documents, self.repeated_lines = RepeatCounter(), RepeatCounter()
        self.faults: dict[lines.Fault, Places[str]] = {fault: Places() for fault in lines.FAULT_TEXTS}
        self.identified, self.others = Places[str](), defaultdict[str, Places[str]](Places[str])
        self.uses = np.zeros((corpus.num_sources, len(SIDES), what.vocab_size), np.int64)
        self._open_uses = np.zeros(what.vocab_size, np.int64)
        self.moments = np.zeros(5)
        self.findings: list[Finding] = []
        self._files, self._corpus = files, corpus
        self._tokenizes_all = what.tokenizer is not None and what.tokenized_share >= 1.0
        self._identified_below = lines.hash_limit(what.identified_share)
        self._threshold = int(corpus.heldout_fraction * 2**64)
        self._sources = corpus.alone
        self._few, self._open = [FewDocuments() for _ in self._sources], 0
        self._begin_document()

    def place_name(self, place: int) -> str:
        """A `Piece.place` in words: the file, and the number of the document in it."""
        number, document = divmod(place, 1 << lines.DOCUMENT_BITS)
        path, source = self._files[number].path, self._sources[self._files[number].source]
        is_file = source.format == "text" and source.document == "file"
        return str(path) if is_file else f"{path}, document {document:,}"

    def cut_few(self) -> None:
        """Hold out the same text as the store, for sources of few documents."""
        fraction = self._corpus.heldout_fraction
        for number, source in enumerate(self.progress.sources):
            if is_cut(source, fraction):
                cut = self._few[number].cut(
                    source, self.uses[number], fraction, tokenizes_all=self._tokenizes_all
                )
                self.progress.sources[number] = cut

    def close(self) -> None:
        """Close the temporary files."""
        for few in self._few:
            few.close()

    def _begin_document(self) -> None:
        for few in self._few:
            few.drop_open()
        self._sentences = self._dropped = self._tokens = self._words = 0

    def add(self, batch: lines.Batch, examined: lines.Examined) -> None:
        """Add a batch; the batches come in the order of the text."""
        self._add_tokens(batch, examined)
        tokenized = examined.tokenized if self._tokenizes_all else None
        pieces = [] if tokenized is None or all(few.are_many for few in self._few) else tokenized.pieces()
        for number, piece in enumerate(batch.pieces):
            if piece.place != self._open:  # the file of the open document could not be read to its end
                self._begin_document()
            self._open = piece.place
            self._words += examined.words[number]
            if tokenized is None:
                self._sentences += examined.sentences[number]
            else:
                self._sentences += int(tokenized.sentences[number])
                self._dropped += int(tokenized.dropped[number])
                self._tokens += int(tokenized.tokens[number])
                if pieces:
                    self._few[self._source(piece)].add(*pieces[number])
            if piece.end is not None:
                self._end_document(piece.end, piece, batch.lines[batch.starts[number]])
        self._add_lines(batch, examined)

    def _end_document(self, end: DocumentEnd, piece: lines.Piece, text: str) -> None:
        side, sentences, source = SIDES[self._side(end)], self._sentences, self._source(piece)
        self.progress.sources[source].end_document(
            end, side, sentences, tokens=self._tokens, words=self._words, dropped=self._dropped
        )
        if sentences:
            self._few[source].end_document(end.content_hash, sentences)
            self.documents.add([end.content_hash], [end.num_bytes], piece.place, [text])
        self._begin_document()

    def _source(self, piece: lines.Piece) -> int:
        return self._files[piece.place >> lines.DOCUMENT_BITS].source

    def _side(self, end: DocumentEnd) -> int:
        return SIDES.index("heldout" if end.content_hash < self._threshold else "train")

    def _add_tokens(self, batch: lines.Batch, examined: lines.Examined) -> None:
        tokenized, size = examined.tokenized, len(self._open_uses)
        if tokenized is None:
            return
        self.moments += tokenized.moments
        by_side = self.uses.reshape(-1, size)
        sides = np.array(
            [
                _OPEN if piece.end is None else len(SIDES) * self._source(piece) + self._side(piece.end)
                for piece in batch.pieces
            ]
        )
        if sides[0] != _OPEN:
            by_side[sides[0]] += self._open_uses
            self._open_uses[:] = 0
        side_of_token = np.repeat(sides, tokenized.tokens)
        for side in np.unique(sides):
            uses = self._open_uses if side == _OPEN else by_side[side]
            uses += np.bincount(tokenized.ids[side_of_token == side], minlength=size)

    def _add_lines(self, batch: lines.Batch, examined: lines.Examined) -> None:
        self.lines += len(batch.lines)

        def shown_place(line: int, shown: str) -> str:
            piece = batch.pieces[bisect_right(batch.starts, line) - 1]
            return f"{self.place_name(piece.place)}: {shown}"

        for fault, seen in examined.faults.items():
            self.faults[fault].add(seen.count, list(itertools.starmap(shown_place, seen.first)))
        # This process identifies languages: each worker would have to load the classifier, which is slow.
        for number in lines.sample(examined.hashes, self._identified_below):
            piece = batch.pieces[bisect_right(batch.starts, number) - 1]
            own = self._sources[self._source(piece)].language
            language = other_language(line := batch.lines[number], own)
            if language is not None:
                self.identified.add(1, [], examined.sizes[number])
            if language:
                shown = [shown_place(number, excerpt(line))]
                self.others[language].add(1, shown, examined.sizes[number])
        hashes = struct.unpack(f">{len(batch.lines)}Q", b"".join(examined.hashes))
        starts = [*batch.starts, len(batch.lines)]
        for (first, last), piece in zip(itertools.pairwise(starts), batch.pieces, strict=True):
            some = slice(first, last)
            self.repeated_lines.add(hashes[some], examined.sizes[some], piece.place, batch.lines[some])


def count_corpus(
    files: Sequence[CorpusFile], corpus: CorpusConfig, what: lines.Examination, processes: int, report: Report
) -> CorpusCounts:
    """Read all files once.

    `processes`: number of worker processes that examine the text; 0: this process, which reads it, does so.
    """
    counts = CorpusCounts(files, corpus, what)
    with closing(counts), progress_display("reading", files, report) as advance:
        examinations = in_processes(
            lines.read_batches(files, corpus, advance, findings=counts.findings),
            lambda batch: (batch.source, batch.lines, batch.starts),
            lines.Examiner,
            given=(what,),
            processes=processes,
            died="a process that reads the corpus died, perhaps out of memory; run the command again",
        )
        for batch, examined in examinations:
            counts.add(batch, examined)
        counts.cut_few()
    return counts
