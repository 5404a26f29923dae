"""A model with its tokenizer <-> a plain Hugging Face BERT folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from bertcli.errors import UserError
from bertcli.hf.config_file import config_json, read_architecture
from bertcli.hf.locate import check_folder
from bertcli.hf.names import TIED_DECODER, hf_name, is_harmless, modern_name
from bertcli.hf.weights import read_weights, write_safetensors
from bertcli.model.init import initialise
from bertcli.model.pretraining import BertForPreTraining
from bertcli.text.tokenizer import Tokenizer

PARTS = {
    "pooler": "pooler",
    "mlm_head": "masked-language-model head",
    "nsp_head": "next-sentence head",
}
"""The modules that a folder may lack -> what a user calls them."""


@dataclass(frozen=True)
class LoadReport:
    """What became of each weight, by its Hugging Face name."""

    loaded: tuple[str, ...]
    new: tuple[str, ...]
    """Not in the folder: freshly initialised."""
    left_aside: tuple[str, ...]
    """In the folder, without a place in the model: other heads, position buffers."""

    def new_parts(self) -> list[str]:
        """The parts of the model that are new, in words."""
        prefixes = {
            hf_name(f"{part}.dense.weight").rpartition(".")[0]: words for part, words in PARTS.items()
        }
        return [words for prefix, words in prefixes.items() if f"{prefix}.weight" in self.new]

    def has_mlm_head(self) -> bool:
        """Whether the folder brought a masked-language-model head: a new one cannot predict."""
        return "cls.predictions.bias" in self.loaded

    def has_nsp_head(self) -> bool:
        """Whether the folder brought a next-sentence head and the pooler that it reads."""
        return {"cls.seq_relationship.weight", "bert.pooler.dense.weight"} <= set(self.loaded)


@dataclass(frozen=True)
class LoadedModel:
    model: BertForPreTraining
    tokenizer: Tokenizer
    report: LoadReport


def save_model_folder(
    folder: Path, model: BertForPreTraining, tokenizer: Tokenizer, card: str | None = None
) -> None:
    """Write `config.json`, `model.safetensors`, the tokenizer's files and the model card.

    The weights are fp32, under transformers' names; the tied decoder is left out, as transformers does. A
    model without the NSP head is declared a `BertForMaskedLM`. The same model gives the same bytes. The
    files are written one by one: write to a fresh folder and rename it where that matters.
    Raises `OSError` where the disk refuses.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = config_json(model.architecture, nsp=model.nsp_head is not None, pad_id=tokenizer.pad_id)
    (folder / "config.json").write_text(text, encoding="utf-8")
    write_safetensors(
        folder / "model.safetensors", {hf_name(name): value for name, value in model.state_dict().items()}
    )
    tokenizer.save(folder, model_max_length=model.architecture.max_positions)
    if card is not None:
        (folder / "README.md").write_text(card, encoding="utf-8")


def load_model_folder(folder: Path, nsp: bool | None = None, dropout: float | None = None) -> LoadedModel:
    """Read a model folder, ours or any of transformers' BERT classes, on the CPU in fp32.

    What the wanted model has and the folder lacks is initialised from torch's generator and named in the
    report, a whole head at a time; what the folder has besides is left aside and named.

    Args:
        folder: holds `config.json`, weights and a vocabulary (`bertcli.hf.locate.resolve_model`).
        nsp: whether the model has pooler and NSP head; None: if the folder has the NSP head.
        dropout: of hidden states and of attention; None: the folder's own rates.

    Raises:
        UserError: a file is missing or damaged; the config asks for another mathematics; weights that are
            unknown, missing or misshapen, all at once; a tokenizer with ids that the model lacks.
    """
    weights_file = check_folder(folder)
    architecture = read_architecture(folder / "config.json")
    if dropout is not None:
        architecture = replace(architecture, dropout=dropout, attention_dropout=dropout)
    tokenizer = Tokenizer.load(folder)
    if tokenizer.vocab_size > architecture.vocab_size:
        raise UserError(
            f"{folder}: the vocabulary has {tokenizer.vocab_size} tokens, but the model only "
            f"{architecture.vocab_size} (vocab_size in config.json): they belong to different models. "
            f"Put the model's own vocabulary there."
        )

    weights = _modernise(read_weights(weights_file), weights_file)
    if nsp is None:
        nsp = hf_name("nsp_head.dense.weight") in weights
    with torch.device("meta"):  # no memory and no random numbers for what is about to be replaced
        model = BertForPreTraining(architecture, nsp=nsp)
    new = _initialise_missing_parts(model, weights, architecture.init_std)
    names = {name: hf_name(name) for name in model.state_dict()}
    left_aside = _check(model, weights, names, new, weights_file)
    loaded = {name: weights[theirs] for name, theirs in names.items() if theirs in weights}
    state = dict(model.state_dict()) | {
        # A copy: what safetensors returns is the file itself, mapped, which may be overwritten later.
        name: value.to(torch.float32, copy=True)
        for name, value in loaded.items()
    }
    model.load_state_dict(state, assign=True)
    report = LoadReport(tuple(names[name] for name in loaded), tuple(sorted(new)), tuple(sorted(left_aside)))
    return LoadedModel(model, tokenizer, report)


def _modernise(weights: dict[str, Tensor], where: Path) -> dict[str, Tensor]:
    """The weights under one spelling, without the second copy of what is tied."""
    modern: dict[str, Tensor] = {}
    for name, value in weights.items():
        key = modern_name(name)
        if key in modern and not torch.equal(modern[key], value):
            raise UserError(f"{where}: holds {key} twice, with different values")
        modern[key] = value
    decoder = modern.pop(TIED_DECODER, None)
    words = modern.get(hf_name("bert.embeddings.word.weight"))
    if decoder is not None and words is not None and not torch.equal(decoder, words):
        raise UserError(
            f"{where}: {TIED_DECODER} differs from the word embeddings. In BERT they are one matrix; "
            f"a model that unties them cannot be read."
        )
    return modern


def _initialise_missing_parts(model: BertForPreTraining, weights: dict[str, Tensor], std: float) -> list[str]:
    """Make real, with fresh values, each head of which `weights` has nothing; returns their names."""
    new: list[str] = []
    for part in PARTS:
        module = getattr(model, part)
        if module is None:
            continue
        theirs = [hf_name(f"{part}.{name}") for name in module.state_dict()]
        if not any(name in weights for name in theirs):
            initialise(module.to_empty(device="cpu"), std)
            new.extend(theirs)
    return new


def _check(
    model: BertForPreTraining,
    weights: dict[str, Tensor],
    names: dict[str, str],
    new: list[str],
    where: Path,
) -> list[str]:
    """The names to leave aside. Raises `UserError` with every weight that does not fit."""
    wanted = {theirs: tuple(model.state_dict()[ours].shape) for ours, theirs in names.items()}
    problems = [f"missing: {name} {shape}" for name, shape in wanted.items() if name not in (*weights, *new)]
    problems += [
        f"shape: {name} is {tuple(weights[name].shape)}, config.json asks for {shape}"
        for name, shape in wanted.items()
        if name in weights and tuple(weights[name].shape) != shape
    ]
    others = [name for name in weights if name not in wanted]
    problems += [f"unknown: {name} {tuple(weights[name].shape)}" for name in others if not is_harmless(name)]
    if problems:
        raise UserError("\n  ".join([f"{where}: {len(problems)} weights do not fit this BERT:", *problems]))
    return [name for name in others if is_harmless(name)]
