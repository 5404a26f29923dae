"""A config -> the sizes of its model, without building it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bertcli.config.schema import PretrainConfig
from bertcli.hf.config_file import read_architecture
from bertcli.model.architecture import Architecture
from bertcli.model.build import architecture


def pretraining_sizes(config: PretrainConfig, vocab_size: int) -> Architecture:
    """The sizes of `model.init_from` (a model folder) if given, with the config's dropout; else the config's.

    Raises `UserError` for a `config.json` that cannot be read.
    """
    if config.model.init_from is None:
        return architecture(config.model, vocab_size)
    dropout = config.model.dropout
    read = read_architecture(Path(config.model.init_from) / "config.json")
    return replace(read, dropout=dropout, attention_dropout=dropout)
