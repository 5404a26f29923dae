"""Sections of a pretraining config with every key decided: BERT's own values where a test does not care."""

from __future__ import annotations

from typing import Any

from bertcli.config.schema import DataConfig, ModelConfig


def data_config(**keys: Any) -> DataConfig:
    return DataConfig.model_validate({"mask_rate": 0.15, "short_steps": 0} | keys)


def model_config(**keys: Any) -> ModelConfig:
    return ModelConfig.model_validate({"dropout": 0.1} | keys)
