"""A config -> the sizes of a new model: those of the `config.json` that its authors would have written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bertcli.config.model import ModelConfig
from bertcli.errors import UserError
from bertcli.families.fresh import Sharing
from bertcli.families.registry import fresh_of
from bertcli.families.tokenizers import TOKENIZERS
from bertcli.hf.config_file import to_architecture
from bertcli.model.architecture import Architecture


def new_architecture(
    config: ModelConfig, vocab_size: int, pad_id: int | None = None, objective: str = "mlm"
) -> Architecture:
    """The sizes of `config`, and what its family leaves no choice about; with rtd those of its generator too.

    Args:
        pad_id: of the vocabulary, because RoBERTa's positions begin after it; None: that of a vocabulary
            that is trained for the family.

    Raises:
        UserError: sizes that the family cannot have.
    """
    fresh, positions = config.fresh, config.positions
    family, (layers, hidden, heads, feed_forward) = fresh.family, config.sizes()
    if pad_id is None:
        pad_id = list(TOKENIZERS[family.model_type].names).index("pad_token")
    sizes = {
        "vocab_size": vocab_size,
        "hidden": hidden,
        "layers": layers,
        "heads": heads,
        "feed_forward": feed_forward,
        "max_positions": positions,
    }
    rates = {"dropout": config.dropout, "attention_dropout": config.dropout}
    keys: dict[str, Any] = {
        "model_type": family.model_type,
        "pad_token_id": pad_id,
        **{family.sizes[ours][0]: size for ours, size in sizes.items()},
        **{family.rates[ours][0]: rate for ours, rate in rates.items()},
        **fresh.keys(hidden, positions),
    }
    architecture = to_architecture(keys, f"a new {family.name}")
    architecture = replace(architecture, max_positions=positions + architecture.position_offset)
    if objective != "rtd":
        return replace(architecture, mask_decoder="mask_decoder.positions" in family.tensors)
    return replace(architecture, generator=_generator(config, architecture))


def _generator(config: ModelConfig, discriminator: Architecture) -> Architecture:
    """Its embeddings have the width of the discriminator's."""
    fresh, given = fresh_of(discriminator.family), config.generator
    assert fresh.generator is not None
    usual = fresh.generator(discriminator.hidden)
    share = given.width_share or usual.width_share
    heads = max(1, round(discriminator.heads * share))
    hidden, width = heads * discriminator.head_size, discriminator.embedding or discriminator.hidden
    if hidden != width and "body.embeddings.widen" not in fresh.family.tensors:
        raise UserError(
            f"model.generator.width_share: {share:g}, but embeddings of {fresh.family.a_name} have the "
            "hidden size; set it to 1"
        )
    return replace(
        discriminator,
        layers=given.layers or max(1, round(discriminator.layers * usual.layers_share)),
        hidden=hidden,
        heads=heads,
        feed_forward=round(discriminator.feed_forward * hidden / discriminator.hidden),
        embedding=None if hidden == width else width,
    )


def sharing(config: ModelConfig, family: str) -> Sharing:
    """How generator and discriminator share embeddings. `family`: its `model_type`."""
    fresh = fresh_of(family)
    assert fresh.generator is not None
    return config.generator.sharing or fresh.generator(0).sharing
