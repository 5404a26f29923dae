"""Pairs of texts -> the probability that the second follows the first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch

from bertcli.data.rows import batch_of
from bertcli.errors import UserError
from bertcli.hf.folder import LoadedModel
from bertcli.inference.lines import Line
from bertcli.inference.rows import in_like_lengths
from bertcli.text.frame import Row
from bertcli.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Pair:
    """Two texts, and where they come from."""

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


@dataclass(frozen=True)
class EncodedPair:
    """A pair, and the row that the model reads."""

    pair: Pair
    row: Row

    @property
    def length(self) -> int:
        """In tokens."""
        return self.row.length


def pairs_of(lines: Iterable[Line]) -> Iterator[Pair]:
    """Lines of the form A, tab, B; a blank one is a pair of empty texts, so that results and lines are
    parallel. Raises `UserError` for a line of another form."""
    for line in lines:
        columns = line.text.split("\t") if line.text.strip() else ["", ""]
        is_empty = any(columns) and not all(column.strip() for column in columns)
        if len(columns) != 2 or is_empty:
            found = f"{len(columns)} columns" if len(columns) != 2 else "an empty text"
            raise UserError(f"{line.where}: expected two texts with a tab between them, found {found}")
        yield Pair(columns[0], columns[1], line.where)


def score_pairs(
    loaded: LoadedModel, pairs: Iterable[Pair], batch_size: int, device: torch.device
) -> Iterator[ScoredPair]:
    """The NSP head's answer for each pair, in the pairs' order (Devlin et al. 2019, section 3.1, task 2).

    Raises `UserError` as `LoadedModel.need`, or (while iterating) where a pair is longer than the model.
    """
    model, tokenizer = loaded.model.to(device).eval(), loaded.tokenizer
    loaded.need("pair_head", "pooler")
    max_tokens = model.architecture.usable_positions

    @torch.inference_mode()
    def compute(encoded: list[EncodedPair]) -> list[ScoredPair]:
        batch = batch_of([each.row for each in encoded], tokenizer.pad_id, device)
        nobody_M = torch.empty(0, dtype=torch.long, device=device)  # no word is asked for
        logits_B2 = model(batch.ids_BT, batch.segments_BT, batch.mask_BT, nobody_M).pair_logits_B2
        is_next_B = logits_B2.float().softmax(dim=-1)[:, 0].tolist()  # label 0: IsNext
        return [
            ScoredPair(each.pair.text_a, each.pair.text_b, probability)
            for each, probability in zip(encoded, is_next_B, strict=True)
        ]

    return in_like_lengths(
        pairs, batch_size, encode=lambda some: _encode(some, tokenizer, max_tokens), compute=compute
    )


def _encode(pairs: list[Pair], tokenizer: Tokenizer, max_tokens: int) -> list[EncodedPair]:
    """The row of each pair."""
    ids = iter(tokenizer.encode_batch([text for each in pairs for text in (each.text_a, each.text_b)]))
    encoded = []
    for each in pairs:
        row = tokenizer.frame.row(next(ids), next(ids))
        if row.length > max_tokens:
            raise UserError(
                f"{each.where}: {row.length} tokens with the special ones, but the model reads at most "
                f"{max_tokens}; shorten the texts"
            )
        encoded.append(EncodedPair(each, row))
    return encoded
