"""Pretraining configs in which text and family have decided: BERT's own values where a test does not care."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertcli.config.load import check_config
from bertcli.config.run import DataRecipe, ModelRecipe, PretrainRecipe, TokenizerRecipe

TRAINING = {"batch_size": 256, "optimizer": "muon", "learning_rate": 1e-3, "warmup_steps": 0}


def data_config(**keys: Any) -> DataRecipe:
    return DataRecipe.model_validate(
        {"objective": "mlm+nsp", "mask_rate": 0.15, "mask_split": (0.8, 0.1, 0.1)} | keys
    )


def model_config(**keys: Any) -> ModelRecipe:
    return ModelRecipe.model_validate({"dropout": 0.1} | keys)


def tokenizer_config(**keys: Any) -> TokenizerRecipe:
    kind = {} if "path" in keys else {"kind": "wordpiece"}
    return TokenizerRecipe.model_validate(kind | {"lowercase": True, "vocab_size": 500} | keys)


def recipe(value: Mapping[str, Any]) -> PretrainRecipe:
    """The config, which may leave out what text, family and steps decide. Raises `UserError` for bad keys."""
    sections = {
        "tokenizer": tokenizer_config(**value.get("tokenizer", {})),
        "data": data_config(**value.get("data", {})),
        "model": model_config(**value.get("model", {})),
        "training": TRAINING | value.get("training", {}),
    }
    return check_config(PretrainRecipe, {**value, **sections}, "test")
