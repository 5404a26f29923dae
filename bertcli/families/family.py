"""The facts by which folders of one family differ from those of another; `hf/` has the algorithms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Spellings = tuple[tuple[str, str], ...]
"""Regular expressions and what takes the place of a match, one after the other."""


@dataclass(frozen=True)
class Family:
    """A family of models.

    Attributes:
        model_type: in `config.json`.
        name: in messages.
        tokenizer: kind of its tokenizer's model, as the tokenizers library calls it.
        sizes, rates: field of `Architecture` -> key of `config.json`, and what a folder without it means;
            whole numbers above 0 (None: it must be there), and numbers from 0 to below 1 (None: may be null).
        parts: field of `Architecture` -> its value in every model of the family; no key says it.
        fixed: key -> the values that mean this family; another value would be another model.
        written: keys that are written and only checked on reading.
        tensors: our module -> its name in a folder; `{}` stands for a layer's number.
        prefix: what the names of the body begin with, but not in a folder of the encoder alone.
        tied_decoder: the word embeddings once more, which many folders hold.
        old_spellings: names in older folders -> those of `tensors`.
        buffers, other_heads: regular expressions of names in a folder that a model may have no place for.
        heads: our modules that a folder may lack -> what a user calls them.
        classes: what a folder holds, or its task -> the class of transformers to load it with.
        tensorflow: names in checkpoints of the authors' own code -> those of `tensors`.
    """

    model_type: str
    name: str
    tokenizer: str
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
