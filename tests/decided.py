"""Sections of a pretraining config with every key decided: BERT's own values where a test does not care."""

from __future__ import annotations

from typing import Any

from bertcli.config.model import ModelConfig
from bertcli.config.schema import DataConfig, TokenizerConfig


def data_config(**keys: Any) -> DataConfig:
    return DataConfig.model_validate(
        {"objective": "mlm+nsp", "mask_rate": 0.15, "mask_split": (0.8, 0.1, 0.1), "short_steps": 0} | keys
    )


def model_config(**keys: Any) -> ModelConfig:
    return ModelConfig.model_validate({"dropout": 0.1} | keys)


def tokenizer_config(**keys: Any) -> TokenizerConfig:
    kind = {} if "path" in keys else {"kind": "wordpiece"}
    return TokenizerConfig.model_validate(kind | {"lowercase": True} | keys)
