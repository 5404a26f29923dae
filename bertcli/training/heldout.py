"""Batches of held-out text, and a temporary token store of any text for a model's own tokenizer."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bertcli.batches.share import BatchSizes, MicroBatch, Share
from bertcli.batches.slots import DAMAGED, Slots, Spans, checked, damage_named, walk
from bertcli.batches.stream import BatchStream, pair_problem
from bertcli.config.load import check_config
from bertcli.config.run import DataRecipe, with_values
from bertcli.config.schema import MASK_SPLIT, PretrainConfig
from bertcli.config.section import ends
from bertcli.corpus.build import prepare_store
from bertcli.corpus.token_store import OpenStore, TokenStore
from bertcli.objectives.registry import MLM, OBJECTIVES, Objective
from bertcli.system.errors import UserError
from bertcli.system.terminal import Report
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training import ranks
from bertcli.training.recipe import decide_recipe


def text_store(folder: Path, corpus: Mapping[str, Any], scratch: str, report: Report) -> OpenStore:
    """Build a token store of the whole text; nothing is held out.

    Ranks may have no common disk, so each builds its own store, in its own process.

    Args:
        folder: the folder of the model.
        corpus: keys of `config.corpus.CorpusConfig`.
        scratch: the folder in which the store is built.

    Raises:
        UserError: the corpus cannot be read.
    """
    config = check_config(
        PretrainConfig,
        {
            "output_dir": scratch,
            "corpus": {**corpus, "heldout_fraction": 0.0},
            "tokenizer": {"path": str(folder), "lowercase": True},
        },
        "the options",
    )
    config = decide_recipe(config, lambda line: None)
    return prepare_store(config, report, processes=None if ranks.num_ranks() == 1 else 0)


HELDOUT_SEED = 0
"""The seed of held-out batches, equal in all runs, so that runs with different seeds can be compared."""
MASK_RATE = 0.15
"""The share of masked tokens in BERT (Devlin et al. 2019, section 3.1)."""


def as_in_bert(objective: Objective, max_length: int) -> DataRecipe:
    """The rows of an objective, masked by BERT's rule."""
    return DataRecipe(
        objective=objective.name,
        max_length=max_length,
        mask_rate=MASK_RATE,
        mask_split=MASK_SPLIT,
    )


class LaidRows(BatchStream):
    """The whole text once: each document is cut into rows of `max_tokens`; its last row is shorter.

    The rows are taken in a keyed order, so the first batches are a sample of all documents. A row's masks
    depend only on its place in the text.
    """

    def __init__(self, store: TokenStore, tokenizer: Tokenizer, config: DataRecipe, batch_size: int):
        """Read the store. Raises `UserError` if it is empty or damaged."""
        super().__init__(store, tokenizer, config, seed=HELDOUT_SEED, sizes=BatchSizes(batch_size))
        with damage_named():
            self._starts = store.sentences[store.starts].astype(np.int64)
        tokens = np.diff(self._starts)
        if (tokens < 1).any():
            raise UserError(DAMAGED)
        self._first_rows = np.concatenate([[0], np.cumsum(-(-tokens // self.max_tokens))])
        self._num_rows, self._batch_size = int(self._first_rows[-1]), batch_size
        self.num_batches = math.ceil(self._num_rows / batch_size)

    def slots(self, step: int) -> Slots:
        """The rows of a batch, by their numbers in the text; the last batch is smaller."""
        turns = np.arange(step * self._batch_size, min((step + 1) * self._batch_size, self._num_rows))
        numbers, none = walk(turns, self._num_rows, self.seed, name="laid"), np.zeros_like(turns)
        return Slots(numbers, sources=none, places=turns, labels=none, turns=turns)

    def spans(self, slots: Slots, step: int) -> Spans:
        """The places in the store of the rows' text."""
        document = np.searchsorted(self._first_rows, slots.numbers, side="right") - 1
        start = self._starts[document] + (slots.numbers - self._first_rows[document]) * self.max_tokens
        end = np.minimum(start + self.max_tokens, self._starts[document + 1])
        return checked(Spans(start, end, end, b_end=end), np.full_like(start, self.max_tokens))


class HeldoutBatches:
    """The batches of the held-out text, masked by BERT's rule, not by that of the training.

    So runs with different `data.mask_rate` or `data.mask_split` can be compared. With rtd, both have their
    values at the end of the training, because the discriminator has learned how many tokens are replaced.

    Word losses come from rows that hold each token once. Pair losses come from separately drawn rows, whose
    masked tokens are not counted. A text that is larger than its budget is sampled: the same drawn rows serve
    words and pairs, and may hold a token twice.

    Attributes:
        pairs: the rule of the pairs; the rule of single texts if the text has no pairs.
        num_batches: number of word batches.
        num_pairs: number of drawn pairs.
    """

    def __init__(
        self,
        store: TokenStore,
        tokenizer: Tokenizer,
        config: DataRecipe,
        batch_size: int,
        at_most: int | None = None,
        once: bool = False,
    ):
        """
        Args:
            config: rows are single texts if its objective says so, or if the text has no sentence pairs.
            at_most: the budget, in batches; None: all of the text.
            once: read no token twice, even in a text that is larger than the budget.

        Raises:
            UserError: the store is empty or damaged.
        """
        objective = OBJECTIVES[config.objective]
        if pair_problem(objective.pairs, store):
            objective = MLM
        rule = as_in_bert(objective, config.max_length)
        if objective.generates:
            own = {"mask_rate": ends(config.mask_rate)[1], "mask_split": config.mask_split}
            rule = with_values(rule, own)
        drawn = BatchStream(store, tokenizer, rule, seed=HELDOUT_SEED, sizes=BatchSizes(batch_size))
        budget = math.inf if at_most is None else at_most
        self.pairs, self._drawn, self._laid = drawn.pairs, drawn, None
        num_drawn = math.ceil(store.num_tokens / (batch_size * drawn.max_tokens))
        if once or num_drawn <= budget:
            words = with_values(rule, {"objective": MLM.name}) if drawn.pairs.is_pair else rule
            laid = LaidRows(store, tokenizer, words, batch_size=batch_size)
            self._laid = laid if once or laid.num_batches <= budget else None
        self._num_drawn = int(min(num_drawn, budget))
        self.num_batches = self._num_drawn if self._laid is None else int(min(self._laid.num_batches, budget))
        self.num_pairs = self._num_drawn * batch_size if drawn.pairs.is_pair else 0

    def steps(self, share: Share) -> Iterator[list[MicroBatch]]:
        """One rank's share of each batch: first the word batches, then the pair batches."""
        words = self._laid or self._drawn
        for step in range(self.num_batches):
            yield words.micro_batches(step, share)
        if self._laid is None or not self.pairs.is_pair:
            return
        for step in range(self._num_drawn):
            drawn = self._drawn.micro_batches(step, share)
            yield [each._replace(batch=each.batch.without_masked()) for each in drawn]

    def count_tokens(self) -> tuple[int, int]:
        """The number of text tokens in the word batches, and the number of distinct places among them."""
        words = self._laid or self._drawn
        spans = [words.spans(words.slots(step), step) for step in range(self.num_batches)]
        starts = np.concatenate([part for each in spans for part in (each.a_start, each.b_start)])
        ends_ = np.concatenate([part for each in spans for part in (each.a_end, each.b_end)])
        order = np.argsort(starts, kind="stable")
        starts, ends_ = starts[order], ends_[order]
        before = np.concatenate([[0], np.maximum.accumulate(ends_)[:-1]])  # where earlier spans end
        distinct = (ends_ - np.maximum(starts, before)).clip(0)
        return int((ends_ - starts).sum()), int(distinct.sum())
