"""Held-out sentences with one masked word each -> what the model would put there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from bertcli.data.rows import batch_of
from bertcli.model.pretraining import PretrainingModel
from bertcli.report.formatting import ELLIPSIS
from bertcli.report.thinning import spread
from bertcli.store.token_store import OpenStore
from bertcli.text.pieces import BLANK
from bertcli.text.tokenizer import Tokenizer

SENTENCES = 12
_LOOKED_AT = 400
_SHORTEST, _LONGEST = 8, 40
"""Tokens of a sentence: enough context, and few enough to be read."""
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
class MaskedExample:
    """A sentence around its mask; `rank`: of the right word among all words, from 1."""

    before: str
    after: str
    right: str
    probability: float
    rank: int
    guesses: Sequence[Guess]


@torch.inference_mode()
def masked_examples(model: PretrainingModel, store: OpenStore, device: torch.device) -> list[MaskedExample]:
    """Up to `SENTENCES`, the same at every call."""
    tokenizer, generator = store.tokenizer, np.random.default_rng(0)
    longest = model.architecture.usable_positions - tokenizer.frame.cost(pair=False)
    chosen = []
    for ids in some_sentences(store, longest):
        places = _whole_words(ids, tokenizer)
        if places:
            chosen.append((ids, int(generator.choice(places))))
    if not chosen:
        return []
    chosen = [chosen[i] for i in spread(len(chosen), SENTENCES)]
    frame = tokenizer.frame
    rows = [frame.row([*ids[:at], tokenizer.mask_id, *ids[at + 1 :]]) for ids, at in chosen]
    batch = batch_of(rows, tokenizer.pad_id, device)
    masked_M = (batch.ids_BT == tokenizer.mask_id).flatten().nonzero()[:, 0]
    model = model.to(device).eval()
    logits_MV = model(batch.ids_BT, batch.segments_BT, batch.mask_BT, masked_M).mlm_logits_MV.float().cpu()
    probabilities_MV = logits_MV.softmax(-1)[:, : tokenizer.vocab_size]
    probabilities_MV[:, list(tokenizer.special_ids)] = 0  # they are never in the text
    return [
        _example(ids, at, probabilities_V.numpy(), tokenizer=tokenizer)
        for (ids, at), probabilities_V in zip(chosen, probabilities_MV, strict=True)
    ]


def some_sentences(store: OpenStore, longest: int) -> Iterator[list[int]]:
    """The ids of sentences from all over the held-out text, or of the training text where none is held out.

    `longest`: tokens that a row has room for.
    """
    side = store.heldout if store.heldout.num_documents else store.train
    for place in spread(side.num_sentences, _LOOKED_AT):
        start, end = int(side.sentences[place]), int(side.sentences[place + 1])
        if _SHORTEST <= end - start <= min(_LONGEST, longest):
            yield np.asarray(side.ids[start:end]).astype(int).tolist()


def readable_piece(tokenizer: Tokenizer, token: int) -> str:
    """A piece for readers, without the sign for the blank before it."""
    return tokenizer.readable(token).removeprefix(BLANK)


def _example(ids: Sequence[int], at: int, probabilities_V: np.ndarray, tokenizer: Tokenizer) -> MaskedExample:
    right = ids[at]
    best = islice(np.argsort(-probabilities_V), WORDS)
    text = tokenizer.decode([*ids[:at], tokenizer.mask_id, *ids[at + 1 :]])
    before, _, after = text.partition(tokenizer.mask_token)
    return MaskedExample(
        before=before if len(before) <= _SIDE else ELLIPSIS + before[-_SIDE:],
        after=after if len(after) <= _SIDE else after[:_SIDE] + ELLIPSIS,
        right=readable_piece(tokenizer, right),
        probability=float(probabilities_V[right]),
        rank=1 + int((probabilities_V > probabilities_V[right]).sum()),
        guesses=[
            Guess(readable_piece(tokenizer, int(i)), float(probabilities_V[i]), right=int(i) == right)
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
        and readable_piece(tokenizer, token).isalpha()
    ]
    long = [at for at in whole if len(readable_piece(tokenizer, ids[at])) >= _LONG_WORD]
    return long or whole
