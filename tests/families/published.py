"""Small models of every family in folders as they are published: their tokenizer, weights by transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

from bertcli.families.registry import FAMILIES
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.parity.families import FIRST, USUAL
from tests.tokenizer.tokenizers_of import make_tokenizer_folder

KEYS = {case.model_type: case.keys for case in FIRST}
FAMILY_TYPES = tuple(KEYS)


def family_folder(
    model_type: str, folder: Path, kind: str = "masked-lm", slow: bool = False, **keys: Any
) -> Path:
    """`kind`: of `Family.classes`; `slow`: without a tokenizer.json; `keys`: of `config.json`."""
    make_tokenizer_folder(model_type, folder, slow=slow)
    tokenizer = Tokenizer.load(folder)
    of_tokenizer = {"vocab_size": tokenizer.vocab_size, "pad_token_id": tokenizer.pad_id}
    config = transformers.AutoConfig.for_model(
        model_type, **{**USUAL, **KEYS[model_type], **of_tokenizer, **keys}
    )
    torch.manual_seed(0)
    getattr(transformers, FAMILIES[model_type].classes[kind])(config).save_pretrained(folder)
    return folder
