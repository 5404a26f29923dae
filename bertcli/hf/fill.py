"""Weights under Hugging Face names -> a model with these weights, and what became of each of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import nn

from bertcli.errors import UserError
from bertcli.families.family import Family
from bertcli.hf.model_files import ModelFiles
from bertcli.hf.names import hf_name, is_harmless
from bertcli.model.build import sizes_alone
from bertcli.model.init import initialize

Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True)
class LoadReport:
    """What became of each weight, by its Hugging Face name."""

    family: Family
    loaded: tuple[str, ...]
    new: tuple[str, ...]
    """Not in the folder, or not taken from it: freshly initialized."""
    left_aside: tuple[str, ...]
    """In the folder but not in the model: other heads, position buffers."""

    def new_parts(self) -> list[str]:
        """The parts of the model that are new, in words."""
        return [words for part, words in self.family.heads.items() if self._names(part) & set(self.new)]

    def dropped(self) -> list[str]:
        """The learned weights among `left_aside`: those of heads, not the buffers of the body."""
        return [name for name in self.left_aside if not re.fullmatch(self.family.buffers, name)]

    def has(self, *parts: str) -> bool:
        """Whether the folder holds all these heads: a new one cannot predict."""
        return all(self._names(part) & set(self.loaded) for part in parts)

    def _names(self, part: str) -> set[str]:
        modules = [theirs for ours, theirs in self.family.tensors.items() if ours.split(".")[0] == part]
        return {f"{module}.{parameter}" for module in modules for parameter in ("weight", "bias")}


def build_from(
    files: ModelFiles,
    build: Callable[[], Model],
    may_be_new: Collection[str] = (),
    fresh: Collection[str] = (),
) -> tuple[Model, LoadReport]:
    """The model that `build` makes, on the CPU in fp32, with the weights of `files`.

    Args:
        files: of the folder.
        build: makes the model; called on the meta device, without memory and random numbers.
        may_be_new: which of `Family.heads` are initialized, from torch's generator, if the folder lacks them.
        fresh: which are initialized in any case; the folder's own are left aside.

    Raises:
        UserError: lists all weights that are unknown or missing, or have another shape.
    """
    with sizes_alone():
        model = build()
    new_parts = _find_new_parts(model, files, may_be_new, fresh=fresh)
    new = [theirs for part in new_parts.values() for theirs in part]
    names = {name: hf_name(files.family, name) for name in model.state_dict()}
    names = {ours: theirs for ours, theirs in names.items() if theirs not in new}
    left_aside = _check(model, files, names)  # before memory is taken for the sizes in config.json
    for part in new_parts:
        fresh_part = getattr(model, part).to_empty(device="cpu")
        initialize(fresh_part, files.architecture.init_std, truncated=False)
    taken = {
        # A copy: safetensors returns the mapped file itself, which may be overwritten later.
        ours: files.weights[theirs].to(torch.float32, copy=True)
        for ours, theirs in names.items()
    }
    model.load_state_dict(model.state_dict() | taken, assign=True)
    return model, LoadReport(
        files.family, tuple(names.values()), new=tuple(sorted(new)), left_aside=tuple(sorted(left_aside))
    )


def _find_new_parts(
    model: nn.Module, files: ModelFiles, may_be_new: Collection[str], fresh: Collection[str]
) -> dict[str, list[str]]:
    """The parts that are initialized -> the Hugging Face names in each."""
    new: dict[str, list[str]] = {}
    for part in files.family.heads:
        theirs = [hf_name(files.family, name) for name in model.state_dict() if name.startswith(f"{part}.")]
        absent = not any(name in files.weights for name in theirs)
        if theirs and (part in fresh or (part in may_be_new and absent)):
            new[part] = theirs
    return new


def _check(model: nn.Module, files: ModelFiles, names: dict[str, str]) -> list[str]:
    """The names to leave aside. Raises `UserError` that lists every weight that does not fit."""
    state, weights = model.state_dict(), files.weights
    expected = {theirs: tuple(state[ours].shape) for ours, theirs in names.items()}
    problems = [f"missing: {name} {shape}" for name, shape in expected.items() if name not in weights]
    problems += [
        f"shape: {name} is {tuple(weights[name].shape)}, config.json asks for {shape}"
        for name, shape in expected.items()
        if name in weights and tuple(weights[name].shape) != shape
    ]
    others = [name for name in weights if name not in expected]
    strange = [name for name in others if not is_harmless(files.family, name)]
    problems += [f"unknown: {name} {tuple(weights[name].shape)}" for name in strange]
    if problems:
        count = "1 weight does" if len(problems) == 1 else f"{len(problems)} weights do"
        raise UserError("\n  ".join([f"{files.where}: {count} not fit this {files.family.name}:", *problems]))
    return others
