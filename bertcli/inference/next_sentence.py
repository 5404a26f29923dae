"""Pairs of texts -> the probability that the second follows the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch

from bertcli.data.rows import batch_of
from bertcli.errors import UserError
from bertcli.hf.folder import LoadedModel
from bertcli.inference.lines import Line
from bertcli.inference.rows import in_similar_lengths, only_numbers
from bertcli.text.frame import Row
from bertcli.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Pair:
    """Two texts and their place."""

    text_a: str
    text_b: str
    where: str


@dataclass(frozen=True)
class ScoredPair:
    """A pair, and the probability that B follows A."""

    text_a: str
    text_b: str
    is_next_probability: float

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints."""
        return asdict(self)


def pairs_of(lines: Iterable[Line]) -> Iterator[Pair]:
    """The pairs of lines "A, tab, B"; a blank line is a pair of empty texts, so that results and lines are
    parallel. Raises `UserError` for a line with another number of texts."""
    for line in lines:
        columns = line.text.split("\t") if line.text.strip() else ["", ""]
        if len(columns) != 2:
            raise UserError(
                f"{line.where}: expected two texts with a tab between them, found {len(columns)} columns"
            )
        yield Pair(columns[0], columns[1], line.where)


def score_pairs(
    loaded: LoadedModel,
    pairs: Iterable[Pair],
    batch_size: int,
    device: torch.device,
    count: Callable[[Iterable[int]], None] = lambda lengths: None,
) -> Iterator[ScoredPair]:
    """The NSP head's answer for each pair, in order (Devlin et al. 2019, section 3.1, task 2).

    `count` is called with the lengths of the rows.

    Raises `UserError` as `LoadedModel.need`, or (while iterating) if a pair is too long for the model.
    """
    model, tokenizer = loaded.model.to(device).eval(), loaded.tokenizer
    loaded.need("pair_head", "pooler")
    max_tokens = model.architecture.usable_positions

    @torch.inference_mode()
    def compute(rows: list[Row]) -> list[float]:
        batch = batch_of(rows, tokenizer.pad_id, device)
        none_M = torch.empty(0, dtype=torch.long, device=device)  # no masked word is predicted
        logits_B2 = model(batch.ids_BT, batch.segments_BT, batch.mask_BT, none_M).pair_logits_B2
        return only_numbers(logits_B2).float().softmax(dim=-1)[:, 0].tolist()  # label 0: IsNext

    def encode(some: list[Pair]) -> list[Row]:
        rows = _encode(some, tokenizer, max_tokens)
        count(row.length for row in rows)
        return rows

    results = in_similar_lengths(pairs, batch_size, encode=encode, compute=compute)
    return (ScoredPair(pair.text_a, pair.text_b, probability) for pair, probability in results)


def _encode(pairs: list[Pair], tokenizer: Tokenizer, max_tokens: int) -> list[Row]:
    """The row of each pair."""
    ids = iter(tokenizer.encode_batch([text for each in pairs for text in (each.text_a, each.text_b)]))
    rows = []
    for each in pairs:
        row = tokenizer.frame.row(next(ids), next(ids))
        if row.length > max_tokens:
            raise UserError(
                f"{each.where}: {row.length} tokens with the special ones, but the model reads at most "
                f"{max_tokens}; shorten the texts"
            )
        rows.append(row)
    return rows
