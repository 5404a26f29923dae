"""`config.json` <-> our sizes; whatever would change the mathematics is obeyed or refused by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertcli.errors import UserError
from bertcli.model.architecture import Architecture
from bertcli.text.json_file import read_json

_SIZES = {
    "vocab_size": "vocab_size",
    "hidden": "hidden_size",
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "feed_forward": "intermediate_size",
    "max_positions": "max_position_embeddings",
    "num_segments": "type_vocab_size",
}
_RATES = {
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
    "layer_norm_eps": "layer_norm_eps",
    "init_std": "initializer_range",
}
"""Our name -> theirs."""

_MOST_LAYERS, _LARGEST = 1000, 1 << 24
"""Of layers, and of every other size: beyond, not even an outline of the model could be made."""

_DEFAULTS: dict[str, int | float] = {
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "layer_norm_eps": 1e-12,
    "initializer_range": 0.02,
}
"""What a folder that does not say so means: the values of Google's release."""

_FIXED: dict[str, tuple[Any, ...]] = {
    "hidden_act": ("gelu",),
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "is_encoder_decoder": (False, None),
}
"""Keys with one meaning here (None: as if absent); another value would be another model."""


def read_architecture(path: Path) -> Architecture:
    """The sizes in a Hugging Face `config.json`.

    Raises `UserError` listing every key that is missing, impossible, or asks for another mathematics.
    """
    config = read_json(path)
    model_type = config.get("model_type", "bert")
    if model_type != "bert":
        raise UserError(f"{path}: model_type is {model_type!r}; bertcli reads BERT models, model_type 'bert'")
    problems = [
        f"{key}: {config[key]!r} is another model than BERT; expected {allowed[0]!r}"
        for key, allowed in _FIXED.items()
        if key in config and not any(config[key] is value or config[key] == value for value in allowed)
    ]
    values: dict[str, Any] = {}
    for ours, theirs in _SIZES.items():
        values[ours] = _positive_int(config, theirs, problems)
    for ours, theirs in _RATES.items():
        values[ours] = _rate(config, theirs, problems)
    if config.get("classifier_dropout") is not None:
        values["classifier_dropout"] = _rate(config, "classifier_dropout", problems)
    if values["init_std"] == 0:
        problems.append("initializer_range: 0 would start every weight of a new head alike")
    if values["hidden"] % values["heads"]:
        problems.append(
            f"num_attention_heads: {values['heads']} does not divide hidden_size {values['hidden']}"
        )
    if problems:
        raise UserError("\n  ".join([f"{path}:", *problems]))
    return Architecture(**values)


def config_json(
    architecture: Architecture, model_class: str, pad_id: int, more: Mapping[str, Any] | None = None
) -> str:
    """The text of a `config.json` that transformers 4 and 5 read, which `more` keys may be added to."""
    config = {
        "architectures": [model_class],
        "classifier_dropout": architecture.classifier_dropout,
        "dtype": "float32",
        "hidden_act": "gelu",
        "model_type": "bert",
        "pad_token_id": pad_id,
        "tie_word_embeddings": True,
    }
    for ours, theirs in (_SIZES | _RATES).items():
        config[theirs] = getattr(architecture, ours)
    return json.dumps(config | dict(more or {}), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _positive_int(config: dict[str, Any], key: str, problems: list[str]) -> int:
    value = config.get(key, _DEFAULTS.get(key))
    if value is None:
        problems.append(f"{key}: missing")
    elif type(value) is not int or value < 1:
        problems.append(f"{key}: {value!r} is not a whole number above 0")
    elif value > (largest := _MOST_LAYERS if key == _SIZES["layers"] else _LARGEST):
        problems.append(f"{key}: {value} is more than any BERT has; at most {largest:,} are read")
    else:
        return value
    return 1


def _rate(config: dict[str, Any], key: str, problems: list[str]) -> float:
    value = config.get(key, _DEFAULTS.get(key))
    if type(value) not in (int, float) or not 0 <= value < 1:
        problems.append(f"{key}: {value!r} is not a number from 0 to below 1")
        return 0.0
    return float(value)
