"""The relation between the two parts of a row, and the number of rows that a run reads."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

from bertcli.batches.pairs import draw_ordered, draw_pairs, draw_spans
from bertcli.batches.share import BatchSizes
from bertcli.batches.slots import Spans
from bertcli.config.schema import DEFAULT_STEPS, DataConfig, PretrainConfig
from bertcli.config.section import AUTO, ends
from bertcli.corpus.token_store import TokenStore
from bertcli.tokenizer.frame import Frame


@dataclass(frozen=True)
class PairRule:
    """A rule for the two parts of a row, as data.

    Attributes:
        term: the name of its loss; empty for rows of one text.
        labels: the name of each label, by number; none for rows of one text.
        draw: slots -> spans, with the arguments of `draw_pairs`.
        true_share: share of the pairs in which A and B are one running text.
    """

    term: str
    labels: tuple[str, ...]
    draw: Callable[..., Spans]
    true_share: float = 0.0

    @property
    def is_pair(self) -> bool:
        """True if a row has two segments and a label."""
        return bool(self.labels)

    def problem(self, store: TokenStore) -> str | None:
        """The reason why the store cannot give such rows, and what to do; None if it can."""
        if not self.is_pair:
            return None
        if self.true_share < 1.0 and store.num_sources < 2:
            return (
                "need at least two documents, and one is left to draw from: set corpus.document (what ends a "
                "document: blank-line or file), add files, or set data.objective: mlm"
            )
        if store.num_pairs == 0:
            return (
                "need documents of two sentences or more, and every document of the corpus is one sentence: "
                "check corpus.format, corpus.document and corpus.language, or set data.objective: mlm"
            )
        return None


ONE_TEXT = PairRule("", (), draw_spans)
NEXT_SENTENCE = PairRule("nsp", ("IsNext", "NotNext"), draw_pairs, true_share=0.5)
"""Next sentence prediction (Devlin et al. 2019, section 3.1, task 2)."""
SENTENCE_ORDER = PairRule("sop", ("InOrder", "Swapped"), draw_ordered, true_share=1.0)
"""Sentence order prediction (Lan et al. 2020, section 3.1)."""

PAIR_RULES = {"mlm": ONE_TEXT, "mlm+nsp": NEXT_SENTENCE, "mlm+sop": SENTENCE_ORDER, "rtd": ONE_TEXT}
"""`data.objective` -> its rule."""


def tokens_until(config: DataConfig, frame: Frame, sizes: BatchSizes, step: int) -> int:
    """The most tokens of text in all rows of the steps before `step`."""
    cost = frame.cost(PAIR_RULES[config.objective].is_pair)
    rows, short = sizes.before(step), sizes.before(min(step, config.short_steps))
    return short * (config.short_length - cost) + (rows - short) * (config.max_length - cost)


def num_steps(config: PretrainConfig, frame: Frame, num_tokens: float) -> int:
    """The number of steps; an epoch is the number of full rows that hold the corpus's tokens once."""
    data, training = config.data, config.training
    if training.epochs is None:
        return training.steps or DEFAULT_STEPS
    tokens = training.epochs * num_tokens
    fewest = tokens_until(data, frame, BatchSizes(min(ends(training.batch_size)), 1), step=1)
    numbers = range(math.ceil(tokens / max(1, fewest)) + 1)

    def read(steps: int, ramp: int) -> int:
        return tokens_until(data, frame, BatchSizes(training.batch_size, ramp), step=steps)

    steps = bisect_left(numbers, tokens, lo=1, key=lambda steps: read(steps, ramp=steps))
    if training.ramp_steps in (AUTO, steps):
        return steps
    return bisect_left(numbers, tokens, lo=1, key=lambda steps: read(steps, training.ramp_steps))


def ramp_steps(config: PretrainConfig, steps: int) -> int:
    """The value of `training.ramp_steps` in a run of `steps` steps."""
    return steps if config.training.ramp_steps == AUTO else config.training.ramp_steps
