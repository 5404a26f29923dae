"""Held-out sentences with one masked word each -> what the model would put there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from bertcli.data.rows import batch_of
from bertcli.model.pretraining import PretrainingModel
from bertcli.report.sentences import some_sentences
from bertcli.report.short import ELLIPSIS
from bertcli.store.token_store import OpenStore
from bertcli.text.pieces import BLANK
from bertcli.text.tokenizer import Tokenizer

SENTENCES = 12
WORDS = 5
_SIDE = 200
"""Characters of the text on either side of the mask."""
_LONG_WORD = 4
"""Characters; shorter words, mostly articles and commas, are masked only where there is no longer one."""


@dataclass(frozen=True)
class Guess:
    """A word that the model would put in the mask's place, and whether it is the one of the text."""

    word: str
    probability: float
    right: bool


@dataclass(frozen=True)
class Filled:
    """A sentence around its mask; `rank`: of the right word among all words, from 1."""

    before: str
    after: str
    right: str
    probability: float
    rank: int
    guesses: Sequence[Guess]


@torch.inference_mode()
def filled_sentences(model: PretrainingModel, store: OpenStore, device: torch.device) -> list[Filled]:
    """Up to `SENTENCES`, the same at every call."""
    tokenizer, generator = store.tokenizer, np.random.default_rng(0)
    longest = model.architecture.usable_positions - tokenizer.frame.cost(pair=False)
    chosen = []
    for ids in some_sentences(store, longest):
        places = _whole_words(ids, tokenizer)
        if places:
            chosen.append((ids, int(generator.choice(places))))
    chosen = [chosen[i] for i in np.linspace(0, len(chosen) - 1, min(SENTENCES, len(chosen))).astype(int)]
    if not chosen:
        return []
    frame = tokenizer.frame
    rows = [frame.row([*ids[:at], tokenizer.mask_id, *ids[at + 1 :]]) for ids, at in chosen]
    batch = batch_of(rows, tokenizer.pad_id, device)
    masked_M = (batch.ids_BT == tokenizer.mask_id).flatten().nonzero()[:, 0]
    model = model.to(device).eval()
    logits_MV = model(batch.ids_BT, batch.segments_BT, batch.mask_BT, masked_M).mlm_logits_MV.float().cpu()
    logits_MV[:, list(tokenizer.special_ids)] = -torch.inf
    logits_MV = logits_MV[:, : tokenizer.vocab_size]
    probabilities_MV = logits_MV.softmax(-1)
    return [
        _filled(ids, at, probabilities_V.numpy(), tokenizer=tokenizer)
        for (ids, at), probabilities_V in zip(chosen, probabilities_MV, strict=True)
    ]


def words_of_piece(tokenizer: Tokenizer, token: int) -> str:
    """A piece for readers, without the sign for the blank before it."""
    return tokenizer.readable(token).removeprefix(BLANK)


def _filled(ids: Sequence[int], at: int, probabilities_V: np.ndarray, tokenizer: Tokenizer) -> Filled:
    right = ids[at]
    best = islice(np.argsort(-probabilities_V), WORDS)
    text = tokenizer.decode([*ids[:at], tokenizer.mask_id, *ids[at + 1 :]])
    before, _, after = text.partition(tokenizer.mask_token)
    return Filled(
        before=before if len(before) <= _SIDE else ELLIPSIS + before[-_SIDE:],
        after=after if len(after) <= _SIDE else after[:_SIDE] + ELLIPSIS,
        right=words_of_piece(tokenizer, right),
        probability=float(probabilities_V[right]),
        rank=1 + int((probabilities_V > probabilities_V[right]).sum()),
        guesses=[
            Guess(words_of_piece(tokenizer, int(i)), float(probabilities_V[i]), right=int(i) == right)
            for i in best
        ],
    )


def _whole_words(ids: Sequence[int], tokenizer: Tokenizer) -> list[int]:
    """The places of words of one piece; of long ones alone, if there are some."""
    ends = [*(not tokenizer.continuation[i] for i in ids[1:]), True]
    whole = [
        at
        for at, (token, ends_here) in enumerate(zip(ids, ends, strict=True))
        if ends_here
        and not tokenizer.continuation[token]
        and token not in tokenizer.special_ids
        and words_of_piece(tokenizer, token).isalpha()
    ]
    long = [at for at in whole if len(words_of_piece(tokenizer, ids[at])) >= _LONG_WORD]
    return long or whole
