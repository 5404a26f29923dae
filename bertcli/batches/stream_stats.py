"""Statistics of a stream of batches.

Everything is counted in the micro-batches themselves, so that an error anywhere before them shows here.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from bertcli.batches.batch import Batch
from bertcli.batches.share import MicroBatch
from bertcli.batches.slots import I64, NOT_NEXT, Slots, Spans
from bertcli.batches.stream import BatchStream
from bertcli.corpus.token_store import TokenStore
from bertcli.objectives.registry import NEXT_SENTENCE
from bertcli.system.terminal import visible
from bertcli.tokenizer.tokenizer import Tokenizer

_TENTHS = 10
_FATES = ("to_mask", "to_random", "unchanged")


def measure_stream(
    stream: BatchStream,
    steps: Iterable[Sequence[MicroBatch]],
    tokenizer: Tokenizer,
    names: Sequence[str] = ("text",),
) -> dict[str, Any]:
    """Statistics of steps 0, 1, 2, ... of `stream`, whose sources have these `names`; dummy micro-batches are
    left out.

    Returns:
        batches, rows, tokens: numbers of them.
        source_shares: share of each source in the rows, by its name.
        label_shares: share of each label, by its name.
        same_document_share: share of NotNext pairs with B from A's document.
        fill: real tokens / positions computed.
        masked_share: share of the maskable tokens, and by tenth of the row's real length.
        mask_split: shares of the mask, random and unchanged tokens.
        special_masked: a count.
        unk_rate: share of the text's tokens.
        stream_hash: SHA-256, the same for any micro-batches.

        Shares of 0 items are null.
    """
    count: Counter[str] = Counter()
    by_tenth = np.zeros((2, _TENTHS), dtype=np.int64)  # maskable, masked
    labels = enumerate(stream.pairs.labels)
    digest = hashlib.sha256()
    for step, micro_batches in enumerate(steps):
        batches = [micro_batch.batch for micro_batch in micro_batches if not micro_batch.is_dummy]
        count["batches"] += 1
        slots = stream.slots(step)
        spans = stream.spans(slots, step)
        count.update(_count_sources(stream.store, spans))
        for batch in batches:
            _count_batch(batch, tokenizer, count, by_tenth=by_tenth)
        if stream.pairs is NEXT_SENTENCE:
            count.update(_count_pairs(stream.store, slots, spans))
        for row in sorted(row for batch in batches for row in _row_digests(batch)):
            digest.update(row)
    return {
        "batches": count["batches"],
        "rows": count["rows"],
        "tokens": count["tokens"],
        "source_shares": {name: _share(count[f"source {i}"], count["spans"]) for i, name in enumerate(names)},
        "label_shares": {name: _share(count[f"label {i}"], count["labels"]) for i, name in labels},
        "same_document_share": _share(count["same_document"], count["not_next"]),
        "fill": _share(count["tokens"], count["positions"]),
        "masked_share": _share(count["masked"], count["maskable"]),
        "masked_share_by_tenth": [_share(int(masked), int(of)) for of, masked in by_tenth.T],
        "mask_split": [_share(count[fate], count["masked"]) for fate in _FATES],
        "special_masked": count["special_masked"],
        "unk_rate": _share(count["unknown"], count["maskable"] + count["unknown"]),
        "stream_hash": digest.hexdigest(),
    }


def _count_batch(batch: Batch, tokenizer: Tokenizer, count: Counter[str], by_tenth: np.ndarray) -> None:
    ids_BT, lengths_B = batch.ids_BT.numpy(), batch.lengths_B.numpy()
    rows_M, columns_M, targets_M = batch.rows_M.numpy(), batch.columns_M.numpy(), batch.targets_M.numpy()
    shown_M = ids_BT[rows_M, columns_M]
    original_BT = ids_BT.copy()
    original_BT[rows_M, columns_M] = targets_M
    columns_T = np.arange(ids_BT.shape[1])
    real_BT = columns_T < lengths_B[:, None]
    special_BT = np.isin(original_BT, tokenizer.special_ids)
    maskable_BT = real_BT & ~special_BT
    unknown_BT = real_BT & (original_BT == tokenizer.unk_id)
    tenth_BT = columns_T * _TENTHS // lengths_B[:, None]
    by_tenth[0] += np.bincount(tenth_BT[maskable_BT], minlength=_TENTHS)
    by_tenth[1] += np.bincount(tenth_BT[rows_M, columns_M], minlength=_TENTHS)
    count.update(
        rows=batch.num_rows,
        tokens=batch.num_tokens,
        positions=ids_BT.size,
        maskable=int(maskable_BT.sum()),
        masked=len(targets_M),
        to_mask=int((shown_M == tokenizer.mask_id).sum()),
        to_random=int(((shown_M != tokenizer.mask_id) & (shown_M != targets_M)).sum()),
        unchanged=int((shown_M == targets_M).sum()),
        special_masked=int(special_BT[rows_M, columns_M].sum()),
        unknown=int(unknown_BT.sum()),
    )
    if batch.labels_B is not None:
        labels = batch.labels_B.tolist()
        count.update({"labels": len(labels)}, **{f"label {each}": labels.count(each) for each in {*labels}})


def _count_sources(store: TokenStore, spans: Spans) -> dict[str, int]:
    """The number of rows, and of those of each source, from the places of their text."""
    bounds = store.bounds or (0, store.num_documents)
    document = _document_of_token(store, np.minimum(spans.a_start, spans.b_start))
    rows = np.bincount(np.searchsorted(bounds, document, side="right") - 1)
    return {"spans": len(document)} | {f"source {i}": int(number) for i, number in enumerate(rows)}


def _count_pairs(store: TokenStore, slots: Slots, spans: Spans) -> dict[str, int]:
    """The number of NotNext pairs, and of those with B from A's document, from the places of their text."""
    not_next = slots.labels == NOT_NEXT
    a_document = _document_of_token(store, spans.a_start[not_next])
    b_document = _document_of_token(store, spans.b_start[not_next])
    return {"not_next": int(not_next.sum()), "same_document": int((a_document == b_document).sum())}


def _document_of_token(store: TokenStore, token: I64) -> I64:
    sentence = np.searchsorted(store.sentences, token.astype(np.uint64), side="right") - 1
    return np.searchsorted(store.documents, sentence.astype(np.uint64), side="right") - 1


def _row_digests(batch: Batch) -> Iterator[bytes]:
    ids_BT, segments_BT = batch.ids_BT.numpy(), batch.segments_BT.numpy()
    rows_M, columns_M, targets_M = batch.rows_M.numpy(), batch.columns_M.numpy(), batch.targets_M.numpy()
    first_of_row = np.searchsorted(rows_M, np.arange(batch.num_rows + 1))
    for row, length in enumerate(batch.lengths_B.tolist()):
        masked = slice(first_of_row[row], first_of_row[row + 1])
        digest = hashlib.sha256()
        for part in (ids_BT[row, :length], segments_BT[row, :length], columns_M[masked], targets_M[masked]):
            digest.update(part.astype("<i8").tobytes())
        if batch.draws_M is not None:
            digest.update(batch.draws_M.numpy()[masked].astype("<f8").tobytes())
        if batch.labels_B is not None:
            digest.update(bytes([int(batch.labels_B[row])]))
        yield digest.digest()


def _share(part: int, total: int) -> float | None:
    return part / total if total else None


def show_pairs(
    batch: Batch, tokenizer: Tokenizer, labels: Sequence[str], at_most: int, color: bool
) -> Iterator[tuple[str | None, str]]:
    """(label, text) of the first rows: the label by its name in `labels`; a masked token is
    `shown<original>`.

    `color`: true for a terminal; our own colors are then the only escape sequences in the text.
    """
    for row in range(min(at_most, batch.num_rows)):
        length = int(batch.lengths_B[row])
        tokens = [tokenizer.token(token) for token in batch.ids_BT[row, :length].tolist()]
        if color:
            tokens = list(map(visible, tokens))
        here = batch.rows_M == row
        columns, targets = batch.columns_M[here].tolist(), batch.targets_M[here].tolist()
        for column, target in zip(columns, targets, strict=True):
            here_id = int(batch.ids_BT[row, column])
            mark = f"{tokenizer.readable(here_id)}<{tokenizer.readable(target)}>"
            tokens[column] = f"\x1b[1m{visible(mark)}\x1b[0m" if color else mark
        label = None if batch.labels_B is None else labels[int(batch.labels_B[row])]
        yield label, tokenizer.join(tokens)
