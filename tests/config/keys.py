"""The keys of the config classes, found without the code that documents them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from tests.config.reads import is_section

REQUIRED: dict[str, dict[str, Any]] = {
    "pretrain": {"output_dir": "runs/x", "corpus": {"files": ["x.txt"]}},
    "finetune": {
        "output_dir": "runs/x",
        "model": "m",
        "task": {"type": "token-classification", "train": "x.conll"},
    },
}
"""Command -> the smallest config."""


def class_keys(kind: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The keys, from the classes themselves."""
    for name, field in kind.model_fields.items():
        kinds = [field.annotation, *getattr(field.annotation, "__args__", ())]
        sections = [each for each in kinds if is_section(each)]
        if sections:
            yield from class_keys(sections[0], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def yaml_keys(value: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for name, each in value.items():
        if isinstance(each, dict) and each:
            yield from yaml_keys(each, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"
