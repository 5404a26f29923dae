"""A text longer than the model -> overlapping windows of tokens, and the window of each token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def cut_windows(sizes: Sequence[int], room: int, overlap: int) -> list[range]:
    """The windows of a text as ranges of its tokens, in order; one empty window for an empty text.

    Args:
        sizes: tokens of each of the text's units, which no window splits; at most `room`.
        room: maximum of tokens in a window.
        overlap: maximum of tokens that a window shares with the one before; fewer if units do not fit.
    """
    bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    windows, first = [], 0
    while True:
        end = int(np.searchsorted(bounds, bounds[first] + room, side="right")) - 1
        windows.append(range(int(bounds[first]), int(bounds[end])))
        if end == len(sizes):
            return windows
        shared = min(overlap, room - sizes[end])  # the next window must hold the unit that did not fit
        first = int(np.searchsorted(bounds, bounds[end] - shared))


def most_context(windows: Sequence[range]) -> NDArray[np.int64]:
    """For each token of the text, the number of the window in which it is farthest from both ends.

    Devlin et al.'s rule for SQuAD ("max context" in their code): each token is predicted once, with as much
    context as possible. A tie goes to the earlier window.
    """
    length = windows[-1].stop
    owner_T, context_T = np.zeros(length, np.int64), np.full(length, -1)
    for number, window in enumerate(windows):
        steps = np.arange(len(window))
        context = np.minimum(steps, steps[::-1])
        here = slice(window.start, window.stop)
        better = context > context_T[here]
        owner_T[here][better] = number
        context_T[here][better] = context[better]
    return owner_T
