"""A config's model section -> the sizes of a model."""

from __future__ import annotations

from bertcli.config.schema import ModelConfig
from bertcli.model.architecture import Architecture


def architecture(config: ModelConfig, vocab_size: int) -> Architecture:
    """The sizes that `config` asks for: the preset's, with those given one by one in their place."""
    layers, hidden, heads, feed_forward = config.sizes()
    return Architecture(
        vocab_size=vocab_size,
        hidden=hidden,
        layers=layers,
        heads=heads,
        feed_forward=feed_forward,
        max_positions=config.max_positions,
        dropout=config.dropout,
        attention_dropout=config.dropout,
    )
