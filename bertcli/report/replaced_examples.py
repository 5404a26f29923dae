"""Held-out sentences in which a generator replaced words -> what the model takes for replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from bertcli.data.rows import batch_of
from bertcli.evaluation.heldout import MASK_RATE
from bertcli.model.replaced_tokens import ReplacedTokenModel
from bertcli.report.masked_examples import SENTENCES, readable_piece, some_sentences
from bertcli.store.token_store import OpenStore


@dataclass(frozen=True)
class ShownToken:
    """A token as the model saw it.

    Attributes:
        original: what the text has in its place; None: the token itself.
        probability: that it was replaced, as the model says.
    """

    text: str
    original: str | None
    probability: float

    @property
    def level(self) -> int:
        """The probability in tenths, for its shade."""
        return min(9, int(10 * self.probability))


@torch.inference_mode()
def replaced_examples(
    model: ReplacedTokenModel, store: OpenStore, device: torch.device
) -> list[Sequence[ShownToken]]:
    """Up to `SENTENCES`, the same at every call; each has at least one masked token."""
    tokenizer, random = store.tokenizer, np.random.default_rng(0)
    longest = model.architecture.usable_positions - tokenizer.frame.cost(pair=False)
    model, frame, shown = model.to(device).eval(), tokenizer.frame, []
    for ids in islice(some_sentences(store, longest), SENTENCES):
        masked = np.sort(random.permutation(len(ids))[: max(1, round(MASK_RATE * len(ids)))])
        places = torch.tensor(masked + frame.a_starts, device=device)
        batch = batch_of([frame.row(ids)], tokenizer.pad_id, device)
        ids_BT = batch.ids_BT.clone()
        ids_BT[0, places] = tokenizer.mask_id
        draws = torch.tensor(random.random(len(masked)), device=device)
        output = model(ids_BT, batch.segments_BT, batch.mask_BT, places, draws)
        probabilities = output.rtd_logits_K.float().sigmoid().cpu()[frame.a_starts :].tolist()
        sampled = dict(zip(masked.tolist(), output.sampled_N.tolist(), strict=True))
        seen = [sampled.get(at, token) for at, token in enumerate(ids)]
        shown.append(
            [
                ShownToken(
                    readable_piece(tokenizer, token),
                    None if token == original else readable_piece(tokenizer, original),
                    probability,
                )
                for token, original, probability in zip(seen, ids, probabilities, strict=False)
            ]
        )
    return shown
