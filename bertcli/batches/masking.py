"""Rows -> masked rows: which tokens are replaced, and by what (Devlin et al. 2019, section 3.1, task 1).

A row has n maskable tokens (all but the special ones). floor(n * mask_rate) of them are chosen, and one more
with the probability of the remaining fraction, so that the mean is exact at every length. At least one is
chosen. Every position is equally likely.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.batches.order import U64, draw_bits, make_key, to_below, to_unit
from bertcli.batches.slots import I64
from bertcli.tokenizer.tokenizer import Tokenizer

Bools = NDArray[np.bool_]
"""A flag for each place in an array."""

_NEVER = np.uint64(0xFFFFFFFFFFFFFFFF)
_LONGEST_SPAN = 3
"""Most words in a span."""
_BEFORE_ROW = 12
"""Number of words drawn before a row, so that a span may also begin there."""


class MaskRule(NamedTuple):
    """The rule by which tokens are masked.

    Attributes:
        rate: share of maskable tokens to choose.
        split: shares of the chosen tokens that are replaced by [MASK], by a random token, and not at all.
        masking: the unit that is chosen as a whole, see `DataConfig`.
        tokenizer: of it `mask_id`, `special_ids`, which are never masked and never drawn as a random token,
            and `continuation`, the pieces that continue a word (`##ing`).
    """

    rate: float
    split: tuple[float, float, float]
    masking: Literal["token", "word", "span"]
    tokenizer: Tokenizer


class Masked(NamedTuple):
    """Masked rows.

    Attributes:
        ids_BT: int64, the input of the model.
        rows_M, columns_M: int64, the places of the chosen tokens, row by row.
        targets_M: int64, the original tokens.
        draws_M: float64 in [0, 1), a uniform draw for each chosen token.
    """

    ids_BT: I64
    rows_M: I64
    columns_M: I64
    targets_M: I64
    draws_M: NDArray[np.float64]


def mask_rows(ids_BT: I64, maskable_BT: Bools, numbers_B: I64, seed: int, rule: MaskRule) -> Masked:
    """Choose and replace tokens. The result is a pure function of (seed, slot number, column)."""
    columns_T = np.arange(ids_BT.shape[1], dtype=np.uint64)
    numbers = numbers_B.astype(np.uint64)
    keys_B = draw_bits(make_key(seed, "mask"), numbers)
    bits_BT = draw_bits(keys_B[:, None], columns_T)
    coin_B = to_unit(draw_bits(make_key(seed, "coin"), numbers))
    budget_B = _draw_budgets(maskable_BT.sum(axis=1), rule.rate, coin_B)
    if rule.masking == "token":
        chosen_BT = _choose_tokens(maskable_BT, bits_BT, budget_B)
    else:
        starts_BT = _unit_starts(ids_BT, maskable_BT, keys_B, rule=rule)
        chosen_BT = _choose_units(starts_BT, maskable_BT, bits_BT, budget_B=budget_B)
    rows_M, columns_M = np.nonzero(chosen_BT)
    targets_M = ids_BT[rows_M, columns_M]
    # The choice of a token and its replacement must be independent: new random bits.
    fate_M = draw_bits(np.uint64(1), bits_BT[rows_M, columns_M])
    bits_M = draw_bits(np.uint64(2), fate_M)
    masked_BT = ids_BT.copy()
    masked_BT[rows_M, columns_M] = _replace(targets_M, to_unit(fate_M), bits_M, rule=rule)
    draws_M = to_unit(draw_bits(np.uint64(5), bits_BT[rows_M, columns_M]))
    return Masked(masked_BT, rows_M, columns_M, targets_M=targets_M, draws_M=draws_M)


def _draw_budgets(maskable_B: I64, rate: float, coin_B: NDArray[np.float64]) -> I64:
    exact = maskable_B * rate
    floor = np.floor(exact + 1e-9)  # 0.15 * 20 is 3, not 2.9999999999999996
    return np.maximum(floor + (coin_B < exact - floor), np.minimum(maskable_B, 1)).astype(np.int64)


def _choose_tokens(maskable_BT, bits_BT, budget_B: I64) -> Bools:
    """The `budget` smallest draws of each row: a uniform sample without replacement."""
    bits_BT = np.where(maskable_BT, bits_BT, _NEVER)
    last = np.take_along_axis(np.sort(bits_BT, axis=1), np.maximum(budget_B - 1, 0)[:, None], axis=1)
    return (bits_BT <= last) & maskable_BT & (budget_B > 0)[:, None]


def _unit_starts(ids_BT: I64, maskable_BT: Bools, keys_B: U64, rule: MaskRule) -> Bools:
    """The first token of each unit: a word, or a span of one to `_LONGEST_SPAN` words.

    A span of n words is 1 / n times as likely as a span of one word (Lan et al. 2020, section 4.1). Spans
    follow one another. No unit goes on after a token that cannot be masked.
    """
    after_other_BT = np.concatenate([np.ones_like(maskable_BT[:, :1]), ~maskable_BT[:, :-1]], axis=1)
    words_BT = maskable_BT & (~rule.tokenizer.continuation[ids_BT] | after_other_BT)
    if rule.masking == "word":
        return words_BT
    rows, length = ids_BT.shape
    draws = np.arange(length + _BEFORE_ROW, dtype=np.uint64)
    shares = np.cumsum(1 / np.arange(1, _LONGEST_SPAN + 1))
    drawn = to_unit(draw_bits(draw_bits(np.uint64(4), keys_B)[:, None], draws))
    sizes = 1 + np.searchsorted(shares / shares[-1], drawn, side="right")
    next_word = np.cumsum(sizes, axis=1) - _BEFORE_ROW  # the first spans end before the row
    begins_BW = np.zeros((rows, length + 1), dtype=np.bool_)
    np.put_along_axis(begins_BW, np.where(next_word >= 0, next_word, length).clip(max=length), True, axis=1)
    number_BT = (np.cumsum(words_BT, axis=1) - 1).clip(0)
    return words_BT & (np.take_along_axis(begins_BW, number_BT, axis=1) | after_other_BT)


def _choose_units(starts_BT, maskable_BT, bits_BT, budget_B: I64) -> Bools:
    """Choose whole units (words or spans) in random order until the budget is used.

    `starts_BT` marks the first token of each unit. A unit that exceeds the rest of the budget is taken with
    the probability rest / size, so that the mean number of tokens stays exact. The first unit is always
    taken.
    """
    columns_T = np.arange(maskable_BT.shape[1])
    start_BT = np.maximum.accumulate(np.where(starts_BT, columns_T, 0), axis=1)
    unit_bits = np.where(maskable_BT, np.take_along_axis(bits_BT, start_BT, axis=1), _NEVER)
    order = np.argsort(unit_bits, axis=1, kind="stable")  # tokens of a unit stay neighbors
    ordered_start = np.take_along_axis(start_BT, order, axis=1)
    first = np.ones_like(starts_BT)
    first[:, 1:] = ordered_start[:, 1:] != ordered_start[:, :-1]
    before = np.maximum.accumulate(np.where(first, columns_T, 0), axis=1)  # tokens of earlier units
    size = np.take_along_axis(_unit_sizes(start_BT, maskable_BT), ordered_start, axis=1)
    left = budget_B[:, None] - before
    coin = to_unit(draw_bits(np.uint64(3), np.take_along_axis(unit_bits, order, axis=1)))
    taken = (left > 0) & ((size <= left) | (coin * size < left) | (before == 0))
    chosen = np.zeros_like(maskable_BT)
    np.put_along_axis(chosen, order, taken, axis=1)
    return chosen & maskable_BT


def _unit_sizes(start_BT: I64, maskable_BT: Bools) -> I64:
    """The number of tokens of each unit, at its first column; int64 [B, T]."""
    rows, length = start_BT.shape
    flat = (start_BT + np.arange(rows)[:, None] * length)[maskable_BT]
    return np.bincount(flat, minlength=rows * length).reshape(rows, length)


def _replace(targets_M: I64, fate_M: NDArray[np.float64], bits_M, rule: MaskRule) -> I64:
    to_mask, to_random, _ = rule.split
    special_ids = rule.tokenizer.special_ids
    random_M = to_below(bits_M, len(rule.tokenizer.continuation) - len(special_ids))
    for special in special_ids:  # ascending: each one shifts the ids from its own upward
        random_M += random_M >= special
    replaced_M = np.where(fate_M < to_mask + to_random, random_M, targets_M)
    return np.where(fate_M < to_mask, rule.tokenizer.mask_id, replaced_M)
