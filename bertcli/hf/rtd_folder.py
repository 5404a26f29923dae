"""A model of replaced words <-> a folder of the discriminator, with that of the generator in it.

MODEL/                            the discriminator, which is what people fine-tune
    generator/                    fills masks; a run goes on from both
    differences.safetensors       gradient-disentangled: what the embeddings differ from the generator's
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from bertcli.errors import UserError
from bertcli.families.fresh import Sharing
from bertcli.files import has_file
from bertcli.hf.fill import build_from
from bertcli.hf.folder import load_model_folder, save_model_folder
from bertcli.hf.locate import GENERATOR, check_generator
from bertcli.hf.model_files import Declaration, read_model_files, write_model_files
from bertcli.hf.weights import read_weights, write_safetensors
from bertcli.model.replaced_tokens import ReplacedTokenModel
from bertcli.model.task_models import PooledModel
from bertcli.text.tokenizer import Tokenizer

DIFFERENCES = "differences.safetensors"
_DIFFERENCE = ".difference"
_OF_GENERATOR = f"{GENERATOR}."


def save_rtd_folder(
    folder: Path,
    model: ReplacedTokenModel,
    tokenizer: Tokenizer,
    trained_length: int | None,
    card: str | None = None,
    weights: Mapping[str, Tensor] | None = None,
) -> None:
    """Write both models; the arguments are those of `save_model_folder`."""
    state = dict(weights or model.state_dict())
    of_generator = {
        name.removeprefix(_OF_GENERATOR): value
        for name, value in state.items()
        if name.startswith(_OF_GENERATOR)
    }
    own = {name: value for name, value in state.items() if not name.startswith(_OF_GENERATOR)}
    differences = {name: own.pop(name) for name in list(own) if name.endswith(_DIFFERENCE)}
    for name, difference in differences.items():
        table = f"{name.removesuffix(_DIFFERENCE)}.weight"
        own[table] = of_generator[table] + difference
    declared = Declaration("discriminator", trained_length=trained_length)
    write_model_files(folder, model, tokenizer, declared=declared, card=card, weights=own)
    save_model_folder(
        folder / GENERATOR,
        model=model.generator,
        tokenizer=tokenizer,
        trained_length=trained_length,
        weights=of_generator,
    )
    if differences:
        write_safetensors(folder / DIFFERENCES, differences)


def load_rtd_folder(folder: Path, sharing: Sharing, dropout: float | None = None) -> ReplacedTokenModel:
    """Read both models, on the CPU in fp32.

    Args:
        dropout: of hidden states and of attention; None: the folder's own rates.

    Raises:
        UserError: as `load_model_folder`; there is no generator, or it has another vocabulary or, with tied
            embeddings, others than the discriminator.
    """
    check_generator(folder)
    files = read_model_files(folder)
    found, _ = build_from(files, lambda: PooledModel(files.architecture, pooler=False, rtd_head=True))
    loaded = load_model_folder(folder / GENERATOR, pairs=False, dropout=dropout)
    loaded.need("mlm_head")
    generator, own_size = loaded.model, files.architecture.vocab_size
    if generator.architecture.vocab_size != own_size or loaded.tokenizer.hash != files.tokenizer.hash:
        raise UserError(
            f"{folder / GENERATOR}: has another vocabulary than the discriminator in {folder}; give the two "
            "models that were trained together"
        )
    architecture = replace(files.architecture, generator=generator.architecture)
    if dropout is not None:
        architecture = replace(architecture, dropout=dropout, attention_dropout=dropout)
    model = ReplacedTokenModel(architecture, sharing)
    state = {f"{_OF_GENERATOR}{name}": value for name, value in generator.state_dict().items()}
    state |= found.state_dict()
    if sharing == "tied":
        _check_tied(state, folder)
    else:
        stored = read_weights(folder / DIFFERENCES) if has_file(folder / DIFFERENCES) else {}
        for name in [name for name in model.state_dict() if name.endswith(_DIFFERENCE)]:
            table = f"{name.removesuffix(_DIFFERENCE)}.weight"
            own = state.pop(table)
            # A sum in fp32 minus one of its terms is not the other term, to the bit.
            state[name] = stored[name] if name in stored else own - state[f"{_OF_GENERATOR}{table}"]
    model.load_state_dict(state)
    return model


def _check_tied(state: Mapping[str, Tensor], folder: Path) -> None:
    embeddings = ("body.embeddings.word", "body.embeddings.position", "body.embeddings.segment")
    for name in [name for name in state if name.startswith((*embeddings, "body.embeddings.norm"))]:
        if not torch.equal(state[name], state[f"{_OF_GENERATOR}{name}"]):
            raise UserError(
                f"{folder}: {name} of the discriminator is not that of its generator. Set "
                "model.generator.sharing to gradient-disentangled, or give the two models that were trained "
                "together"
            )
