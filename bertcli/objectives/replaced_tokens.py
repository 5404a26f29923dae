"""Replaced token detection: the losses of generator and discriminator (Clark et al. 2020, section 2)."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from bertcli.batches.batch import Batch
from bertcli.config.model import ModelConfig
from bertcli.config.run import ModelRecipe
from bertcli.config.schema import PretrainConfig, TrainingConfig
from bertcli.folders.config_file import going_on, read_architecture, sharing
from bertcli.folders.model_files import Adapt
from bertcli.folders.model_folder import load_rtd_folder, save_rtd_folder
from bertcli.model.architecture import Architecture
from bertcli.model.init import expected_first_mlm_loss
from bertcli.model.pretraining import PretrainingModel, ReplacedTokenModel, RtdOutput
from bertcli.objectives.base import Reference, Term, words_reference
from bertcli.objectives.learner import Learner
from bertcli.objectives.masked_language import cross_entropy, round_masked
from bertcli.system.terminal import say


class ReplacedTokens:
    """The MLM loss of the generator, plus `weight` times the discriminator's loss over all real tokens.

    A token that the generator guessed right counts as not replaced.
    """

    def __init__(self, weight: float, compiled: bool = False) -> None:
        """Build the task. `compiled` is that of `MaskedLanguage`."""
        self._weight, self._cross_entropy = weight, cross_entropy(compiled)

    def counts(self, batch: Batch) -> dict[str, int]:
        return {"mlm": batch.num_masked, "rtd": batch.num_tokens}

    def terms(self, model: nn.Module, batch: Batch) -> dict[str, Term]:
        rounded = round_masked(batch)
        inputs = rounded.ids_BT, rounded.segments_BT, rounded.mask_BT, rounded.masked_M
        output: RtdOutput = model(*inputs, batch.draws_M)
        words = self._cross_entropy(output.mlm_logits_MV, rounded.targets_M)
        is_replaced = torch.zeros(batch.ids_BT.numel(), dtype=torch.bool, device=batch.ids_BT.device)
        is_replaced[batch.masked_M] = output.sampled_N != batch.targets_M
        labels_K = is_replaced[output.real_K]
        logits_K = output.rtd_logits_K.float()
        loss = F.binary_cross_entropy_with_logits(logits_K, labels_K.float(), reduction="sum")
        said_K = logits_K.detach() > 0
        shares = {
            "rtd_replaced": (labels_K.sum(), torch.tensor(len(labels_K), device=labels_K.device)),
            "rtd_found": ((said_K & labels_K).sum(), labels_K.sum()),
        }
        correct = (said_K == labels_K).sum()
        return {"mlm": words, "rtd": Term(loss, correct, self._weight, shares=shares)}


_MARGIN = 0.05
"""Share of the loss of a constant answer; a smaller gain counts as none."""


class ReplacementLearner(Learner):
    """The learner of replaced tokens, with a generator that replaces them."""

    save, term = staticmethod(save_rtd_folder), "rtd"
    advice = "take more text or more training.steps"

    def build(self, config: ModelConfig, sizes: Architecture) -> ReplacedTokenModel:
        """A fresh model and its generator."""
        return ReplacedTokenModel(sizes, sharing(config, sizes.family))

    def go_on_from(self, source: Path, config: ModelRecipe) -> ReplacedTokenModel:
        say(f"starting from the weights of {source} and its generator")
        return self.load(source, config, going_on(config))

    def load(self, folder: Path, config: ModelConfig, adapt: Adapt | None = None) -> ReplacedTokenModel:
        family = read_architecture(folder / "config.json").family
        return load_rtd_folder(folder, sharing(config, family), adapt)

    def load_words(self, source: Path, config: ModelRecipe) -> PretrainingModel | None:
        """The generator."""
        return self.load(source, config, going_on(config)).generator

    def task(self, training: TrainingConfig) -> ReplacedTokens:
        """The losses of generator and discriminator."""
        return ReplacedTokens(training.rtd_weight, training.compile is True)

    def references(
        self, sizes: Architecture, unigram_entropy: float, fresh: bool, mask_rate: float
    ) -> tuple[Reference, ...]:
        """The references of generator and discriminator."""
        assert sizes.generator is not None
        first_loss = expected_first_mlm_loss(sizes.generator) if fresh else None
        chance = -mask_rate * math.log(mask_rate) - (1 - mask_rate) * math.log(1 - mask_rate)
        return words_reference(unigram_entropy, first_loss), Reference(
            term="rtd",
            first_loss=math.log(2) if fresh else None,
            chance_loss=chance,
            line=f"rtd by chance: loss {chance:.3f} while every masked token is replaced, accuracy "
            f"{1 - mask_rate:.0%}: all tokens are called original",
            chance_accuracy=1 - mask_rate,
            rarer="rtd_replaced",
        )

    def judge(
        self, reference: Reference, loss: float, accuracy: float, metrics: Mapping[str, Any]
    ) -> tuple[str, bool]:
        """The discriminator's figures beside those of an answer that knows only how many are replaced."""
        (constant, original), found = reference.by_chance(metrics), metrics["rtd_found"]
        return (
            f"held-out rtd {loss:.3f}: {found:.1%} of the replaced tokens are found, and {accuracy:.1%} of "
            f"all tokens are told right (all called original: {original:.1%}, loss {constant:.3f})",
            loss < (1 - _MARGIN) * constant,
        )

    def card_rows(self, config: PretrainConfig, sizes: Architecture) -> str:
        """The generator's sizes, and the weight of the discriminator's loss."""
        assert sizes.generator is not None
        return (
            f"| generator | {sizes.generator.layers} layers x {sizes.generator.hidden} |\n"
            f"| weight of replaced tokens | {config.training.rtd_weight:g} |\n"
        )
