from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest

from bertcli.batches.masking import Masked, MaskRule, _unit_starts, mask_rows
from bertcli.batches.order import draw_bits, make_key

VOCAB = 1000
MASK = 4


def rule(special_ids: Sequence[int] = range(5), **changes) -> MaskRule:
    continuation = np.zeros(VOCAB, dtype=bool)
    continuation[600:] = True
    tokenizer = SimpleNamespace(mask_id=MASK, special_ids=special_ids, continuation=continuation)
    values = {"rate": 0.15, "split": (0.8, 0.1, 0.1), "masking": "token", "tokenizer": tokenizer}
    return MaskRule(**(values | changes))


def rows(num_rows: int, length: int, seed: int = 0, maskable: int | None = None):
    """Rows of [CLS] text [SEP] padding, text of `maskable` tokens."""
    maskable = length - 2 if maskable is None else maskable
    ids = np.random.default_rng(seed).integers(5, VOCAB, (num_rows, length))
    columns = np.arange(length)
    is_text = np.broadcast_to((columns > 0) & (columns <= maskable), ids.shape)
    return np.where(is_text, ids, 2), is_text


def mask(num_rows: int, length: int, seed: int = 0, maskable: int | None = None, **changes):
    ids, is_text = rows(num_rows, length, seed, maskable)
    return ids, is_text, mask_rows(ids, is_text, np.arange(num_rows), seed, rule(**changes))


def chosen(masked: Masked) -> np.ndarray:
    table = np.zeros(masked.ids_BT.shape, dtype=bool)
    table[masked.rows_M, masked.columns_M] = True
    return table


@pytest.mark.parametrize("masking", ["token", "word", "span"])
def test_a_million_tokens_are_masked_by_the_rule(masking: str) -> None:
    ids, is_text, masked = mask(8200, 128, masking=masking)
    table = chosen(masked)
    assert is_text.sum() > 1e6
    assert abs(table.sum() / is_text.sum() - 0.15) < 0.001
    assert not (table & ~is_text).any()
    by_tenth = [part.sum() / part.size for part in np.array_split(table[:, 1:127], 10, axis=1)]
    assert np.abs(np.array(by_tenth) - 0.15).max() < 0.005
    assert np.array_equal(masked.targets_M, ids[table])
    shown = masked.ids_BT[table]
    assert abs((shown == MASK).mean() - 0.8) < 0.01
    assert abs((shown == masked.targets_M).mean() - 0.1) < 0.01
    assert np.array_equal(masked.ids_BT[~table], ids[~table])


@pytest.mark.parametrize("maskable", [7, 8, 13, 20, 33, 60, 125])
def test_the_rate_is_exact_at_every_length(maskable: int) -> None:
    _, _, masked = mask(20_000, 130, maskable=maskable)
    per_row = chosen(masked).sum(axis=1)
    exact = 0.15 * maskable
    assert set(per_row) <= {int(np.floor(exact + 1e-9)), int(np.ceil(exact - 1e-9))}
    assert abs(per_row.mean() / maskable - 0.15) < 0.002


@pytest.mark.parametrize("maskable", [1, 2, 6])
def test_at_least_one_token_is_masked(maskable: int) -> None:
    _, _, masked = mask(500, 20, maskable=maskable)
    assert (chosen(masked).sum(axis=1) == 1).all()


def test_a_row_without_text_has_no_masks() -> None:
    _, _, masked = mask(3, 10, maskable=0)
    assert len(masked.targets_M) == 0


def test_random_tokens_come_from_the_whole_vocabulary_less_the_special_ones() -> None:
    special = [0, 100, 101, 102, 999]
    _, _, masked = mask(20_000, 64, split=(0.0, 1.0, 0.0), special_ids=special)
    drawn = masked.ids_BT[chosen(masked)]
    counts = np.bincount(drawn, minlength=VOCAB)
    assert counts[special].sum() == 0
    others = np.delete(counts, special)
    expected = others.mean()
    assert ((others - expected) ** 2 / expected).sum() < 994 + 5 * (2 * 994) ** 0.5


def test_masks_depend_on_seed_and_slot_alone() -> None:
    ids, is_text = rows(40, 50)
    numbers = np.arange(1000, 1040)
    whole = mask_rows(ids, is_text, numbers, 1, rule())
    part = mask_rows(ids[10:20], is_text[10:20], numbers[10:20], 1, rule())
    assert np.array_equal(whole.ids_BT[10:20], part.ids_BT)
    wider = np.pad(ids, ((0, 0), (0, 30)))
    wide = mask_rows(wider, np.pad(is_text, ((0, 0), (0, 30))), numbers, 1, rule())
    assert np.array_equal(whole.ids_BT, wide.ids_BT[:, :50])
    other_seed = mask_rows(ids, is_text, numbers, 2, rule())
    assert (chosen(whole) != chosen(other_seed)).any()


def test_whole_words_are_masked_together() -> None:
    ids, is_text, masked = mask(2000, 100, masking="word")
    table = chosen(masked)
    joined = is_text[:, 1:] & is_text[:, :-1] & (ids[:, 1:] >= 600)  # a piece after another piece of its word
    assert (table[:, 1:][joined] == table[:, :-1][joined]).all()
    assert table.any(axis=1).all()


def test_spans_are_one_to_three_whole_words_in_the_shares_of_the_paper() -> None:
    """6/11, 3/11 and 2/11 (Lan et al. 2020, section 4.1); those at the ends of a row may be cut."""
    ids, is_text = rows(2000, 130)
    spans = rule(masking="span")
    starts = _unit_starts(ids, is_text, np.arange(2000, dtype=np.uint64), rule=spans)
    is_word = is_text & ~spans.tokenizer.continuation[ids]
    is_word[:, 1] = True  # a piece after [CLS] has no word to continue
    assert not (starts & ~is_word).any()
    number = np.cumsum(is_word, axis=1)
    words = np.concatenate([np.diff(number[row, starts[row]])[1:] for row in range(2000)])
    assert set(words) == {1, 2, 3}
    shares = np.bincount(words, minlength=4)[1:] / len(words)
    assert shares == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.01)


def test_spans_are_masked_as_a_whole() -> None:
    """But for the last of a row, whose words may end with the row."""
    ids, is_text, masked = mask(2000, 100, masking="span", rate=0.4)
    table, numbers = chosen(masked), np.arange(2000)
    keys = draw_bits(make_key(0, "mask"), numbers.astype(np.uint64))
    starts = _unit_starts(ids, is_text, keys, rule=rule(masking="span"))
    inside = is_text[:, 1:] & is_text[:, :-1] & ~starts[:, 1:]
    assert (table[:, 1:][inside] == table[:, :-1][inside]).all()
