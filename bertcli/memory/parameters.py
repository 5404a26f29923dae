"""A model -> how many parameters it has, by part."""

from __future__ import annotations

from collections import Counter

from torch import nn

from bertcli.families.fresh import Sharing
from bertcli.model.architecture import Architecture
from bertcli.model.build import sizes_alone
from bertcli.model.pretraining import PretrainingModel
from bertcli.model.replaced_tokens import ReplacedTokenModel

_TASK_HEADS = ("classifier", "qa_outputs")


def count_parameters(model: nn.Module) -> dict[str, int]:
    """By part: embeddings, encoder, and the heads by their names, or `head` for that of a labeled task.

    The MLM head shares its decoder with the word embeddings, which are counted once.
    """
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        part = name.removeprefix("body.").split(".")[0]
        counts["head" if part in _TASK_HEADS else part] += parameter.numel()
    return dict(counts)


def pretraining_parameters(
    architecture: Architecture, pair_head: bool, sharing: Sharing = "tied"
) -> dict[str, int]:
    """As `count_parameters`, of a model that is built without values; with a generator, of both."""
    with sizes_alone():
        if architecture.generator is not None:
            return count_parameters(ReplacedTokenModel(architecture, sharing))
        return count_parameters(PretrainingModel(architecture, pair_head))
