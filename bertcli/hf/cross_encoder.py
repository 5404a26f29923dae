"""Models that give one number for a pair of texts, for sentence-transformers' class `CrossEncoder`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bertcli.config.finetune import TaskSettings


def is_cross_encoder(settings: TaskSettings, labels: Sequence[str]) -> bool:
    """Whether a model gives one number for a pair: that of a regression, or of one label (`multi_label`)."""
    one_output = settings.type == "regression" or (settings.multi_label and len(labels) == 1)
    return one_output and len(settings.text_columns) == 2


def cross_encoder_keys(settings: TaskSettings) -> dict[str, Any]:
    """The keys of `config.json` by which `CrossEncoder.predict`, release 4 or later, gives our numbers.

    Without them it takes the sigmoid of every single output.
    """
    is_probability = settings.sigmoid or settings.multi_label
    activation = "activation.Sigmoid" if is_probability else "linear.Identity"
    return {"sentence_transformers": {"activation_fn": f"torch.nn.modules.{activation}"}}
