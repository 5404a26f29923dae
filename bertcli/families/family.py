"""The facts in which the folders of families differ; `hf/` has the algorithms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Spellings = tuple[tuple[str, str], ...]
"""Regular expressions and their replacements, applied one after the other."""


@dataclass(frozen=True)
class Family:
    """A family of models.

    Attributes:
        model_type: in `config.json`.
        name: in messages.
        sizes, rates: field of `Architecture` -> key of `config.json`, and its default. Sizes are integers
            above 0 (default None: the key is required), rates numbers from 0 to below 1 (None: may be null).
        parts: field of `Architecture` -> its value in every model of the family; it has no key.
        fixed: key -> the allowed values; another value would be another model.
        written: keys that are written, and only checked on reading.
        tensors: our module -> its name in a folder; `{}` is the number of a layer.
        prefix: prefix of the names of the body, except in a folder of the encoder alone.
        tied_decoder: name of the copy of the word embeddings that many folders hold.
        old_spellings: names in older folders -> those of `tensors`.
        buffers, other_heads: regular expressions of names in a folder that a model may not use.
        heads: our modules that a folder may lack -> their names in messages.
        classes: what a folder holds, or its task -> the class of transformers that loads it.
        tensorflow: names in checkpoints of the authors' own code -> those of `tensors`.
    """

    model_type: str
    name: str
    sizes: Mapping[str, tuple[str, int | None]]
    rates: Mapping[str, tuple[str, float | None]]
    fixed: Mapping[str, tuple[Any, ...]]
    written: Mapping[str, Any]
    tensors: Mapping[str, str]
    prefix: str
    tied_decoder: str
    old_spellings: Spellings
    buffers: str
    other_heads: str
    heads: Mapping[str, str]
    classes: Mapping[str, str]
    parts: Mapping[str, int] = field(default_factory=dict)
    tensorflow: Spellings = ()
