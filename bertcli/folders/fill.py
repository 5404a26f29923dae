"""Weights under Hugging Face names -> a model with these weights, and what became of each of them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import nn

from bertcli.families.family import PARTS, Family
from bertcli.folders.model_files import ModelFiles
from bertcli.folders.weights import hf_name, is_buffer, is_harmless
from bertcli.model.architecture import Architecture
from bertcli.model.encoder import BodyModel
from bertcli.model.init import initialize_head, sizes_alone
from bertcli.system.errors import UserError

Model = TypeVar("Model", bound=nn.Module)
OUTPUTS = ("classifier", "qa_outputs")
"""The last layers of task models."""
DROPPED = "dropped, since no class of transformers holds it with the rest"
"""The words with which a command reports `LoadReport.dropped`."""


@dataclass(frozen=True)
class LoadReport:
    """What became of each weight, by its Hugging Face name."""

    family: Family
    heads: frozenset[str]
    """The modules of the model besides its body that the folder holds (`families.family.PARTS`)."""
    new_heads: frozenset[str]
    """The heads that are freshly initialized."""
    loaded: tuple[str, ...]
    new: tuple[str, ...]
    """The weights that are freshly initialized: not in the folder, or not taken from it."""
    left_aside: tuple[str, ...]
    """The weights in the folder that are not in the model: other heads, position buffers."""

    def new_parts(self) -> list[str]:
        """The parts of the model that are new, in words."""
        return [words for part, words in PARTS.items() if part in self.new_heads]

    def dropped(self) -> list[str]:
        """The learned weights among `left_aside`: those of heads, not the buffers of the body."""
        return [name for name in self.left_aside if not is_buffer(self.family, name)]

    def has(self, *parts: str) -> bool:
        """True if the folder holds all these heads: a new one cannot predict."""
        return self.heads >= set(parts)


def build_from(
    files: ModelFiles,
    build: Callable[[], Model],
    kind: str | None = None,
    may_be_new: Collection[str] = (),
    fresh: Collection[str] = (),
) -> tuple[Model, LoadReport]:
    """The model that `build` makes, on the CPU in fp32, with the weights of `files`.

    Args:
        files: the content of the folder.
        build: makes the model; called on the meta device, without memory and random numbers.
        kind: the head of the model's task, a key of `Family.heads`; None: no task.
        may_be_new: names in `PARTS`; these are initialized, from torch's generator, if the folder lacks them.
        fresh: names in `PARTS`; these are initialized in any case, and the folder's own are left aside.

    Raises:
        UserError: lists all weights that are unknown or missing, have another shape, or are not finite.
    """
    with sizes_alone():
        model = build()
    names = {name: hf_name(files.family, name, kind) for name in model.state_dict()}
    new_parts = list(_find_new_parts(names, files, may_be_new, fresh=fresh))
    new = sorted(theirs for ours, theirs in names.items() if _part(ours) in new_parts)
    names = {ours: theirs for ours, theirs in names.items() if _part(ours) not in new_parts}
    left_aside = _check(model, files, names)  # before memory is taken for the sizes in config.json
    for part in new_parts:
        _give_values(getattr(model, part), files.architecture, is_output=part in OUTPUTS)
    taken = {
        # A copy: safetensors returns the mapped file itself, which may be overwritten later.
        ours: files.weights[theirs].to(torch.float32, copy=True)
        for ours, theirs in names.items()
    }
    _check_finite(files, {names[ours]: value for ours, value in taken.items()})
    model.load_state_dict(model.state_dict() | taken, assign=True)
    return model, LoadReport(
        files.family,
        heads=frozenset(map(_part, names)) & PARTS.keys(),
        new_heads=frozenset(new_parts),
        loaded=tuple(names.values()),
        new=tuple(new),
        left_aside=tuple(sorted(left_aside)),
    )


def _give_values(part: nn.Module, architecture: Architecture, is_output: bool) -> None:
    """Initialize a part on the meta device, from torch's generator; it is on the CPU after that."""
    empty = {  # as `to_empty`, which would import sympy, for a second
        name: torch.empty(value.shape, dtype=value.dtype, device="cpu")
        for name, value in part.state_dict().items()
    }
    part.load_state_dict(empty, assign=True)
    initialize_head(part, architecture, is_output=is_output)


def rename_outputs(model: BodyModel, before: Sequence[str], after: Sequence[str]) -> None:
    """Replace the last layer of a task model, whose outputs are `before`, by one with the outputs `after`.

    An output that is in both keeps its row to the bit. The others have the values that a new layer of this
    size would have there, from torch's generator.
    """
    name = next(part for part in OUTPUTS if hasattr(model, part))
    old = getattr(model, name)
    with sizes_alone():
        new = nn.Linear(old.in_features, len(after))
    _give_values(new, model.architecture, is_output=True)
    rows = [(number, before.index(label)) for number, label in enumerate(after) if label in before]
    with torch.no_grad():
        for number, earlier in rows:
            new.weight[number], new.bias[number] = old.weight[earlier], old.bias[earlier]
    setattr(model, name, new)


def _check_finite(files: ModelFiles, weights: Mapping[str, torch.Tensor]) -> None:
    """Raise `UserError` that names the weights with values that are NaN or infinite."""
    # A sum takes one pass and no new memory. It is finite if all values are, unless it overflows.
    damaged = [
        name for name, value in weights.items() if not value.sum().isfinite() and not value.isfinite().all()
    ]
    if damaged:
        more = f" and {len(damaged) - 5} more" if len(damaged) > 5 else ""
        raise UserError(
            f"{files.where}: NaN or infinite values in {', '.join(damaged[:5])}{more}: the "
            "training diverged, or the file is damaged. Give an earlier checkpoint, or copy or download the "
            "model again"
        )


def _find_new_parts(
    names: dict[str, str], files: ModelFiles, may_be_new: Collection[str], fresh: Collection[str]
) -> Iterator[str]:
    """The names in `PARTS` that are initialized; `names`: our parameter -> its name in a folder.

    The pooler of tasks and the MLM head share a dense layer in some families.
    """
    poolers = {name for head in files.family.heads.values() for name in (head.dense, head.norm)}
    for part in PARTS:
        theirs = [theirs for ours, theirs in names.items() if _part(ours) == part]
        own = [name for name in theirs if part == "pooler" or name.rpartition(".")[0] not in poolers]
        absent = not any(name in files.weights for name in own)
        if theirs and (part in fresh or (part in may_be_new and absent)):
            yield part


def _part(name: str) -> str:
    return name.split(".")[0]


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
