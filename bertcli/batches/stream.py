"""The endless stream of batches: `stream[step]` is a pure function of (store, config, step).

The path of the data: slots -> spans -> rows -> masks -> batch. A resume needs one integer. The numbers of
loader processes, ranks and micro-batches only change how a step is divided.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import torch

from bertcli.batches.batch import Batch
from bertcli.batches.loader import load_steps
from bertcli.batches.masking import MaskRule, mask_rows
from bertcli.batches.pairs import draw_sizes
from bertcli.batches.share import (
    BatchSizes,
    MicroBatch,
    Share,
    Shares,
    SourceRows,
    num_steps,
    ramp_steps,
    tokens_until,
)
from bertcli.batches.slots import I64, Slots, Spans, draw_slots
from bertcli.config.run import DataRecipe, PretrainRecipe
from bertcli.config.section import value_at
from bertcli.corpus.manifest import REBUILD
from bertcli.corpus.token_store import OpenStore, TokenStore
from bertcli.objectives.registry import OBJECTIVES, PairRule
from bertcli.system.errors import UserError
from bertcli.tokenizer.tokenizer import Tokenizer

_MORE_TEXT = "add text, or change corpus.heldout_fraction"
MANY_READS = 20
"""A source that is read this many times or more gets a warning."""


class BatchStream:
    """The batches by step number, in [0, 2^62 / batch_size)."""

    def __init__(
        self,
        store: TokenStore,
        tokenizer: Tokenizer,
        config: DataRecipe,
        seed: int,
        sizes: BatchSizes,
        shares: Shares | None = None,
    ):
        """Open the stream. `config.mask_rate` moves in the steps in which `sizes` move.

        Args:
            shares: the share of each source of the store in the rows; None: that of its tokens.

        Raises:
            UserError: the store cannot give the rows that the objective needs.
        """
        self.objective = OBJECTIVES[config.objective]
        self.pairs = self.objective.pairs
        self.sources = store.sources
        for number, source in enumerate(self.sources, start=1):
            which = f" of source {number}" if len(self.sources) > 1 else ""
            if source.num_tokens == 0:
                raise UserError(f"the token store holds no tokens{which} on this side; {_MORE_TEXT}")
            if problem := pair_problem(self.pairs, source):
                raise UserError(f"sentence pairs{which} (objective: {self.objective.name}) {problem}")
        self.store, self.config, self.seed, self.sizes = store, config, seed, sizes
        by_size = [source.num_tokens / store.num_tokens for source in self.sources]
        self.source_rows = SourceRows(sizes, shares or (lambda step: by_size))
        self._tokenizer = tokenizer

    @property
    def max_tokens(self) -> int:
        """The most tokens of text in a row: `max_length` without special tokens."""
        return self._text_tokens(self.config.max_length)

    def tokens_until(self, step: int) -> int:
        """The value of `share.tokens_until` for this stream."""
        return tokens_until(self.config, self._tokenizer.frame, self.sizes, step=step)

    def _text_tokens(self, length: int) -> int:
        return length - self._tokenizer.frame.cost(self.pairs.is_pair)

    def reuse_lines(self, steps: int, names: Sequence[str] = ("text",)) -> list[str]:
        """Lines for the user: how often a run of `steps` uses its text, its sources with these `names`, and
        its true pairs, and a warning."""
        store = self.store
        times = self.tokens_until(steps) / store.num_tokens
        lines = [f"text: {store.num_tokens:,} tokens, read about {times:.1f} times"]
        if len(self.sources) > 1:
            lines += self._source_lines(steps, names)
        if self.pairs.is_pair:
            places = store.num_pairs
            uses = self.sizes.before(steps) * self.pairs.true_share / places
            lines.append(f"pairs: {places:,} places give a true pair, each used about {uses:.2g} times")
            if uses > 10 * times:
                lines.append(
                    "warning: few places give a true pair (most documents are one sentence long), so they "
                    "repeat much more than the text does; consider data.objective: mlm"
                )
        return lines

    def _source_lines(self, steps: int, names: Sequence[str]) -> Iterator[str]:
        rows = self.source_rows.before(steps)
        for name, source, own in zip(names, self.sources, rows.tolist(), strict=True):
            times = own * self.max_tokens / source.num_tokens
            yield (
                f"source {name}: {source.num_tokens:,} tokens, {own / rows.sum():.1%} of the rows, read "
                f"about {times:.1f} times"
            )
            if times >= MANY_READS:
                yield (
                    f"warning: the source {name} is read {times:.0f} times, and the model memorizes it: "
                    "lower its weight, or give more text"
                )

    def __getitem__(self, step: int) -> Batch:
        """All rows of a step, in the order of the slots."""
        slots = self.slots(step)
        return self._batch(slots, self.spans(slots, step), step)

    def slots(self, step: int) -> Slots:
        """All slots of a step."""
        before, after = (self.source_rows.before(at) for at in (step, step + 1))
        return draw_slots(self.seed, step, before, rows=after - before)

    def micro_batches(self, step: int, share: Share) -> list[MicroBatch]:
        """One rank's share of a step: rows of similar length together, each part padded to its longest row.

        The spans, whose lengths decide how the step is divided, are drawn for the rows of all ranks; nothing
        else is.
        """
        slots = self.slots(step)
        spans = self.spans(slots, step)
        by_length = np.argsort(-spans.num_tokens, kind="stable")
        size = share.micro_batch_size
        parts = [by_length[i : i + size] for i in range(0, len(by_length), size)]
        return share.of(parts, lambda rows: self._batch(slots.take(rows), spans.take(rows), step))

    def mask_rate(self, step: int) -> float:
        """Share of the tokens to predict."""
        return value_at(self.config.mask_rate, step, self.sizes.ramp_steps)

    def _batch(self, slots: Slots, spans: Spans, step: int) -> Batch:
        is_pair, size = self.pairs.is_pair, self._tokenizer.vocab_size
        rows = build_rows(self.store, spans, self._tokenizer, is_pair=is_pair)
        if rows.ids_BT.max() >= size:  # possible in a store that is too large to be checked in full
            raise UserError(
                f"the token store is damaged: it holds the id {rows.ids_BT.max()}, and the vocabulary has "
                f"{size:,} entries; bertcli prepare CONFIG --verify says where. {REBUILD}"
            )
        config = self.config
        rule = MaskRule(self.mask_rate(step), config.mask_split, config.masking, tokenizer=self._tokenizer)
        masked = mask_rows(rows.ids_BT, rows.maskable_BT, slots.numbers, seed=self.seed, rule=rule)
        return Batch(
            ids_BT=torch.from_numpy(masked.ids_BT),
            segments_BT=torch.from_numpy(rows.segments_BT),
            lengths_B=torch.from_numpy(rows.lengths_B),
            rows_M=torch.from_numpy(masked.rows_M),
            columns_M=torch.from_numpy(masked.columns_M),
            targets_M=torch.from_numpy(masked.targets_M),
            labels_B=torch.from_numpy(slots.labels) if is_pair else None,
            draws_M=torch.from_numpy(masked.draws_M) if self.objective.generates else None,
        )

    def spans(self, slots: Slots, step: int) -> Spans:
        """The places in the store of the text of each slot of a step.

        Raises the `UserError` of `TokenStore.check_sizes`.
        """
        self.store.check_sizes()
        config = self.config
        rate = self.mask_rate(step)
        most, short = self._text_tokens(config.max_length), config.short_pair_probability
        size = draw_sizes(slots.numbers, self.seed, most, short_probability=short, mask_rate=rate)
        spans = Spans(*np.empty((len(Spans._fields), len(size)), np.int64))
        for number, source in enumerate(self.sources):
            rows = np.flatnonzero(slots.sources == number)
            if len(rows):
                own = self.pairs.draw(source, slots.take(rows), seed=self.seed, size=size[rows])
                for all_rows, some in zip(spans, own, strict=True):
                    all_rows[rows] = some
        return spans

    def steps(self, first: int, last: int, share: Share, workers: int) -> Iterator[list[MicroBatch]]:
        """A rank's share of steps [first, last), in order, prefetched by `workers` processes (0: none)."""
        return load_steps(partial(self.micro_batches, share=share), range(first, last), workers)


def pair_problem(rule: PairRule, store: TokenStore) -> str | None:
    """The reason why the store cannot give such rows, and what to do; None if it can."""
    if not rule.is_pair:
        return None
    if rule.true_share < 1.0 and store.num_texts < 2:
        return (
            "need at least two documents, and one is left to draw from: set corpus.document (what ends a "
            "document: blank-line or file), add files, or set data.objective: mlm"
        )
    if store.num_pairs == 0:
        return (
            "need documents of two sentences or more, and every document of the corpus is one sentence: "
            "check corpus.format, corpus.document and corpus.language, or set data.objective: mlm"
        )
    return None


def training_stream(config: PretrainRecipe, store: OpenStore) -> BatchStream:
    """The batches of a run. Raises the `UserError` of `BatchStream`."""
    steps = num_steps(config, store.tokenizer.frame, store.train.num_tokens)
    sizes = BatchSizes(config.training.batch_size, ramp_steps(config, steps))
    tokens = [source.train.tokens for source in store.manifest.sources]
    return BatchStream(
        store.train,
        store.tokenizer,
        config.data,
        seed=config.seed,
        sizes=sizes,
        shares=lambda step: config.corpus.shares(tokens, step, sizes.ramp_steps),
    )


class Rows(NamedTuple):
    """Unmasked rows: ids_BT int64, segments_BT int64, maskable_BT bool (known text), lengths_B int64."""

    ids_BT: I64
    segments_BT: I64
    maskable_BT: np.ndarray
    lengths_B: I64


def build_rows(store: TokenStore, spans: Spans, tokenizer: Tokenizer, is_pair: bool) -> Rows:
    """Frame each slot's spans as a pair, or as one text with B right after A.

    Raises the `UserError` of `TokenStore.check_sizes`.
    """
    store.check_sizes()
    frame = tokenizer.frame
    a_end = frame.a_starts + spans.a_end - spans.a_start  # these are columns of the rows
    b_start = a_end + len(frame.between) if is_pair else a_end
    b_end = b_start + spans.b_end - spans.b_start
    lengths = b_end + len(frame.suffix)
    columns = np.arange(lengths.max(), dtype=np.int64)
    in_b, real = columns >= b_start[:, None], columns < lengths[:, None]
    shift = np.where(in_b, (spans.b_start - b_start)[:, None], (spans.a_start - frame.a_starts)[:, None])
    ids = store.ids.take(shift + columns, mode="clip").astype(np.int64)
    ids[~real] = tokenizer.pad_id
    maskable = real & (ids != tokenizer.unk_id)  # nothing can be learned from an unknown word
    rows = np.arange(len(ids))
    places = [(frame.prefix, np.zeros_like(a_end)), (frame.suffix, b_end)]
    for special, starts in [*places, (frame.between, a_end)] if is_pair else places:
        for offset, token_id in enumerate(special):
            ids[rows, starts + offset] = token_id
            maskable[rows, starts + offset] = False
    segments = (in_b & real).astype(np.int64) if is_pair and frame.two_segments else np.zeros_like(ids)
    return Rows(ids, segments, maskable_BT=maskable, lengths_B=lengths)
