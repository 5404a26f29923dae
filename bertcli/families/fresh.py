"""What a new model of a family has: its authors' choices, where a config leaves them open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bertcli.families.family import Family, Objective

FamilyName = Literal[
    "bert", "roberta", "albert", "distilbert", "electra", "deberta", "deberta-v3", "modernbert"
]
TokenizerKind = Literal["wordpiece", "byte-bpe", "unigram"]


Sharing = Literal["tied", "gradient-disentangled"]


@dataclass(frozen=True)
class Generator:
    """The model that replaces words, beside the model that finds them (Clark et al. 2020, section 3.2).

    Attributes:
        layers_share, width_share: its layers and its hidden size, in shares of the other's.
        sharing: `tied`: both have the same embeddings. `gradient-disentangled`: the other's are the
            generator's, of which only the generator learns, and a difference (He et al. 2023, section 3.2).
    """

    layers_share: float = 1.0
    width_share: float = 0.25
    sharing: Sharing = "tied"


@dataclass(frozen=True)
class Fresh:
    """A new model of a family, before its first step.

    Attributes:
        family: of its folder.
        tokenizer: the kind of vocabulary that is trained for it.
        lowercase: whether that vocabulary is in lower case.
        objective: what it learns.
        mask_rate: share of the tokens to predict; None: that of the recipe.
        mask_split: with rtd, of these tokens, those that become the mask, a random token, and stay.
        generator: hidden size -> that of replaced words; None: the family does not learn them.
        max_positions: tokens in the longest row that it can read.
        feed_forward: inner features of the feed-forward network for each hidden one.
        keys: hidden size and `max_positions` -> the keys of `config.json`, besides sizes and dropout, that
            differ from the family's defaults.
    """

    family: Family
    tokenizer: TokenizerKind
    lowercase: bool
    objective: Objective = "mlm"
    mask_rate: float | None = None
    mask_split: tuple[float, float, float] = (0.8, 0.1, 0.1)
    generator: Callable[[int], Generator] | None = None
    max_positions: int = 512
    feed_forward: float = 4.0
    keys: Callable[[int, int], Mapping[str, Any]] = lambda hidden, max_positions: {}
