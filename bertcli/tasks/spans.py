"""Start and end logits of the windows of a text -> its best spans (Devlin et al. 2019, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from bertcli.tasks.windows import most_context

MAX_TOKENS = 30
"""Of an answer; this and the number of answers are those of the original code."""
NUM_BEST = 20


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens `first` to `last` (inclusive) of the text; `score` is the sum of a start and an end logit."""

    first: int
    last: int
    score: float


def best_spans(windows: Sequence[range], logits: Sequence[Tensor]) -> list[Span]:
    """The best `NUM_BEST` spans of at most `MAX_TOKENS` tokens, the best first; none in an empty text.

    `logits` holds [tokens of the window, 2] for each of `windows` (`windows.cut_windows`). A span counts in
    the window where its first token has most context. All these spans are compared, not only those between
    the likeliest starts and ends.
    """
    if not windows[-1]:
        return []
    owner_T = torch.from_numpy(most_context(windows))
    spans: list[Span] = []
    for number, (window, logits_T2) in enumerate(zip(windows, logits, strict=True)):
        start_T, end_T = logits_T2.unbind(dim=-1)
        elsewhere_T = owner_T[window.start : window.stop] != number
        start_T = start_T.masked_fill(elsewhere_T, -torch.inf)
        end_TL = F.pad(end_T, (0, MAX_TOKENS - 1), value=-torch.inf).unfold(0, MAX_TOKENS, 1)
        score_TL = start_T[:, None] + end_TL
        best = score_TL.flatten().topk(min(NUM_BEST, score_TL.numel()))
        for place, score in zip(best.indices.tolist(), best.values.tolist(), strict=True):
            if score > -torch.inf:
                first, more = divmod(place, MAX_TOKENS)
                spans.append(Span(window.start + first, window.start + first + more, score))
    return sorted(spans, key=lambda span: -span.score)[:NUM_BEST]
