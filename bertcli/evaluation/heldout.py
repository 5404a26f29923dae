"""Held-out text -> batches, with the same masks at every evaluation of every run."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bertcli.config.ramp import ends
from bertcli.config.schema import MASK_SPLIT, DataConfig
from bertcli.data.pair_rules import PAIR_RULES
from bertcli.data.share import MicroBatch, Share
from bertcli.data.stream import BatchStream
from bertcli.store.token_store import TokenStore
from bertcli.text.tokenizer import Tokenizer

HELDOUT_SEED = 0
"""Not the run's, so that runs with different seeds can be compared."""
MASK_RATE = 0.15
"""BERT's (Devlin et al. 2019, section 3.1)."""


class HeldoutBatches:
    """The batches that hold the text once, masked by BERT's own rule, not by the training's.

    So runs with different `data.mask_rate` or `data.mask_split` can be compared as well. With rtd both are
    the training's, at its end: the discriminator has learned how many tokens are replaced.
    """

    def __init__(self, store: TokenStore, tokenizer: Tokenizer, config: DataConfig, batch_size: int):
        """Rows are single texts if the config says so, or if the text has no sentence pairs."""
        objective = "mlm" if PAIR_RULES[config.objective].problem(store) else config.objective
        rule = DataConfig(
            objective=objective,
            max_length=config.max_length,
            mask_rate=ends(config.mask_rate)[1] if objective == "rtd" else MASK_RATE,
            mask_split=config.mask_split if objective == "rtd" else MASK_SPLIT,
            short_steps=0,
        )
        self._stream = BatchStream(store, tokenizer, rule, seed=HELDOUT_SEED, batch_size=batch_size)
        self.pairs = self._stream.pairs
        self.num_batches = math.ceil(store.num_tokens / (batch_size * self._stream.max_tokens))

    def steps(self, share: Share, at_most: int | None = None) -> Iterator[list[MicroBatch]]:
        """One rank's share of each batch."""
        num_batches = self.num_batches if at_most is None else min(at_most, self.num_batches)
        return (self._stream.micro_batches(step, share) for step in range(num_batches))
