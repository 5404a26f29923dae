"""Held-out sentences of a token store, few and always the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bertcli.report.thinning import spread
from bertcli.store.token_store import OpenStore

_SHORTEST, _LONGEST = 8, 40
"""Tokens of a sentence: enough context, and few enough to be read."""
_LOOKED_AT = 400


def some_sentences(store: OpenStore, longest: int) -> Iterator[list[int]]:
    """The ids of sentences from all over the held-out text, or of the training text where none is held out.

    `longest`: tokens that a row has room for.
    """
    side = store.heldout if store.heldout.num_documents else store.train
    for place in spread(side.num_sentences, _LOOKED_AT):
        start, end = int(side.sentences[place]), int(side.sentences[place + 1])
        if _SHORTEST <= end - start <= min(_LONGEST, longest):
            yield np.asarray(side.ids[start:end]).astype(int).tolist()
