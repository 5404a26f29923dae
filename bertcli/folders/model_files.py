"""The files of a model folder -> sizes, tokenizer, weights by their current names; a model -> its files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bertcli.families.family import Family
from bertcli.families.registry import FAMILIES
from bertcli.folders.config_file import config_json, read_architecture
from bertcli.folders.locate import check_folder
from bertcli.folders.weights import (
    hf_name,
    join_fused,
    modern_name,
    read_weights,
    split_fused,
    weight_files,
    write_safetensors,
)
from bertcli.model.architecture import Architecture
from bertcli.model.encoder import BodyModel
from bertcli.system.errors import UserError
from bertcli.system.formats import read_json
from bertcli.tokenizer.folder import tokenizer_files
from bertcli.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class ModelFiles:
    """The content of a model folder.

    Attributes:
        where: the weight file, for messages.
        config: the full `config.json`.
        weights: the weights by their names in current Hugging Face folders (`folders.weights.hf_name`).
    """

    where: Path
    config: Mapping[str, Any]
    architecture: Architecture
    tokenizer: Tokenizer
    weights: dict[str, Tensor]

    def __post_init__(self) -> None:
        tokens, places = self.tokenizer.vocab_size, self.architecture.vocab_size
        if tokens > places:
            raise UserError(
                f"{self.where.parent}: the vocabulary has {tokens} tokens, but the model only {places} "
                f"(vocab_size in config.json): they belong to different models. "
                f"Put the model's own vocabulary there."
            )

    @property
    def family(self) -> Family:
        """The family of the model."""
        return FAMILIES[self.architecture.family]

    @property
    def holds_mask_decoder(self) -> bool:
        """True if the folder holds the position table of the mask decoder (`model.encoder`); a model whose
        embeddings have positions has another table of this name."""
        return not self.architecture.position_table and self.holds("mask_decoder.positions.weight")

    def holds(self, parameter: str) -> bool:
        """True if the folder holds a parameter (our name); not for parameters in the head of a task."""
        try:
            return hf_name(self.family, parameter) in self.weights
        except KeyError:  # no model of this family has it
            return False


@dataclass(frozen=True)
class Declaration:
    """The content of a model's `config.json` besides its sizes, and the length that its tokenizer declares.

    Attributes:
        kind: the kind of model, a key of `Family.classes`.
        keys: further keys of its `config.json`.
        trained_length: `folders.lengths.trained_length`; None: the length of all its positions.
    """

    kind: str
    keys: Mapping[str, Any] = field(default_factory=dict)
    trained_length: int | None = None


Adapt = Callable[[Architecture], Architecture]
"""The sizes in a folder -> those of the model that is built from it, with other rates or positions."""
_POSITIONS = ("body.embeddings.position.weight", "mask_decoder.positions.weight")
"""Our names of the tables with a row for each position."""


def read_model_files(folder: Path, adapt: Adapt | None = None) -> ModelFiles:
    """Read a folder of ours or of any of the family's classes in transformers.

    If `adapt` gives more positions, learned ones are repeated from the first to the last, as often as needed
    (Beltagy et al. 2020, "Longformer", section 5): what was learned about neighbors then holds everywhere but
    where two copies meet. The rows before `position_offset`, which no token has, are not repeated.

    Raises `UserError`: a file is missing or damaged; the config asks for other mathematics; two copies of
    a weight differ; a tokenizer with ids that the model lacks.
    """
    where = check_folder(folder)
    config = folder / "config.json"
    architecture, tokenizer = read_architecture(config), Tokenizer.load(folder)
    family = FAMILIES[architecture.family]
    weights = split_fused(family, _modernize(read_weights(where), where, family), architecture.heads)
    files = ModelFiles(where, read_json(config), architecture, tokenizer=tokenizer, weights=weights)
    if adapt is None:
        return files
    sizes, offset = adapt(architecture), architecture.position_offset
    for name in {hf_name(family, name) for name in _POSITIONS if files.holds(name)}:
        table = weights[name]
        if len(table) == architecture.max_positions:  # `fill.build_from` names a table of another length
            places_T = torch.arange(sizes.usable_positions) % architecture.usable_positions
            weights[name] = torch.cat([table[:offset], table[offset + places_T]])
    return replace(files, architecture=sizes)


def files_read(folder: Path) -> list[Path]:
    """The files that `read_model_files` reads. Raises `UserError` if one is missing."""
    where = check_folder(folder)
    return list(dict.fromkeys([*tokenizer_files(folder), where, *weight_files(where)]))


def write_model_files(
    folder: Path,
    model: BodyModel,
    tokenizer: Tokenizer,
    declared: Declaration,
    card: str | None = None,
    weights: Mapping[str, Tensor] | None = None,
) -> None:
    """Write `config.json`, `model.safetensors`, the tokenizer's files and the card.

    The weights are fp32: `model`'s own, or `weights` (an earlier copy). Their names are those of
    transformers' class for the declared kind. The same weights give the same bytes. The
    files are written one by one: for an atomic write, write to a new folder and rename it. Raises `OSError`
    if the disk is full or read-only.
    """
    folder.mkdir(parents=True, exist_ok=True)
    architecture = model.architecture
    write_description(folder, architecture, tokenizer, declared=declared)
    family, state = FAMILIES[architecture.family], weights or model.state_dict()
    named = hf_weights(family, state, declared.kind, heads=architecture.heads)
    write_safetensors(folder / "model.safetensors", named)
    if card is not None:
        text = f"{card}{_tokenizer_note(tokenizer, family)}"
        (folder / "README.md").write_text(text, encoding="utf-8")


def write_description(
    folder: Path, architecture: Architecture, tokenizer: Tokenizer, declared: Declaration
) -> None:
    """Write what a model folder holds besides its weights: `config.json` and the tokenizer's files."""
    text = config_json(architecture, declared.kind, tokenizer, more=declared.keys)
    (folder / "config.json").write_text(text, encoding="utf-8")
    positions = architecture.usable_positions
    tokenizer.save(folder, model_max_length=min(declared.trained_length or positions, positions))


def _tokenizer_note(tokenizer: Tokenizer, family: Family) -> str:
    """The card's note about tokenizer classes of transformers that do not suit the folder."""
    classes = tokenizer.other_classes(family.model_type)
    if not classes:
        return ""
    names = ", ".join(f"`{name}`" for name in classes)
    return (
        f"\nLoad the tokenizer with `AutoTokenizer`. {names} do not suit this folder: they ignore "
        "`tokenizer.json`, make rules of their own from the vocabulary, and may give other ids.\n"
    )


def hf_weights(family: Family, state: Mapping[str, Tensor], kind: str, heads: int) -> dict[str, Tensor]:
    """Our parameters -> the tensors of a folder by their names.

    Args:
        kind: what the folder holds, a key of `Family.classes`.
        heads: the number of attention heads.
    """
    named = {hf_name(family, name, kind): value for name, value in state.items()}
    if kind == "encoder":
        named = {name.removeprefix(family.prefix): value for name, value in named.items()}
    return join_fused(family, named, heads)


def _modernize(weights: dict[str, Tensor], where: Path, family: Family) -> dict[str, Tensor]:
    """The weights by their current names, without the second copy of tied weights."""
    modern: dict[str, Tensor] = {}
    for name, value in weights.items():
        key = modern_name(family, name)
        if key in modern and not torch.equal(modern[key], value):
            raise UserError(f"{where}: holds {key} twice, with different values")
        modern[key] = value
    decoder = modern.pop(family.tied_decoder, None)
    words = modern.get(hf_name(family, "body.embeddings.word.weight"))
    if decoder is not None and words is not None and not torch.equal(decoder, words):
        raise UserError(
            f"{where}: {family.tied_decoder} differs from the word embeddings. In {family.name} they are "
            f"one matrix; a model with two matrices is not supported."
        )
    return modern
