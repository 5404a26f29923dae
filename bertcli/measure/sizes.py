"""A config -> the sizes of its model, without building it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bertcli.config.schema import PretrainConfig
from bertcli.hf.config_file import read_architecture
from bertcli.hf.locate import GENERATOR
from bertcli.hf.new_model import new_architecture
from bertcli.model.architecture import Architecture

RATES = ("dropout", "attention_dropout")


def pretraining_sizes(config: PretrainConfig, vocab_size: int) -> Architecture:
    """The sizes of `model.init_from` (a model folder) if given, with the config's dropout; else the config's.

    Raises `UserError` for a `config.json` that cannot be read.
    """
    if config.model.init_from is None:
        return new_architecture(config.model, vocab_size, objective=config.data.objective)
    source, rates = Path(config.model.init_from), dict.fromkeys(RATES, config.model.dropout)
    sizes = replace(read_architecture(source / "config.json"), **rates)
    if config.data.objective != "rtd":
        return sizes
    return replace(sizes, generator=replace(read_architecture(source / GENERATOR / "config.json"), **rates))
