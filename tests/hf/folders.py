"""Tiny models and tokenizers for tests, and the folders they are saved in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from bertcli.hf.folder import save_model_folder
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import BertForPreTraining
from bertcli.text.tokenizer import Normalization, Tokenizer

WORDS = """
[PAD] [UNK] [CLS] [SEP] [MASK] the a cat dog sat on mat ran house dark was of night ##s ##ing ##ed
. , ! ? [ ] mask sep c l s he she it and in
""".split()  # noqa: SIM905
ODD = Architecture(
    vocab_size=len(WORDS),
    hidden=15,
    layers=2,
    heads=5,
    feed_forward=23,
    max_positions=19,
    init_std=0.4,
)
"""Every axis its own size, and weights large enough to make every error seen."""


def tiny_tokenizer() -> Tokenizer:
    return Tokenizer.from_vocabulary(WORDS, Normalization())


def random_model(seed: int = 0, nsp: bool = True, **changes: object) -> BertForPreTraining:
    """A model none of whose parameters has its initial value of 0 or 1."""
    torch.manual_seed(seed)
    model = BertForPreTraining(replace(ODD, **changes), nsp=nsp).eval()  # pyright: ignore[reportArgumentType]
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.normal_(1.0 if "norm.weight" in name else 0.0, 0.3)
    return model


def saved_model(folder: Path, seed: int = 0, nsp: bool = True) -> BertForPreTraining:
    model = random_model(seed, nsp)
    save_model_folder(folder, model, tiny_tokenizer())
    return model


def rewrite(folder, change, to="model.safetensors"):
    """Replace the weights by `change` of them, in a file of the name `to`."""
    weights = load_file(folder / "model.safetensors")
    weights = {name: value.clone() for name, value in weights.items()}
    (folder / "model.safetensors").unlink()
    weights = change(weights)
    if to.endswith(".bin"):
        torch.save(weights, folder / to)
    else:
        save_file(weights, folder / to)


def without(*prefixes):
    return lambda weights: {name: value for name, value in weights.items() if not name.startswith(prefixes)}


def renamed(old, new):
    return lambda weights: {name.replace(old, new): value for name, value in weights.items()}


def added(**new):
    return lambda weights: weights | {name.replace("__", "."): value for name, value in new.items()}
