"""The config of a run of either kind with `auto` decided, and checked copies with other values.

`auto` ends at two moments. Text, family and steps decide what a store needs, on any machine
(`training.recipe`), and the weights of a model decide how fast it is fine-tuned: that is the recipe. Store
and machine decide the rest where the run starts (`training.resolve`). The types of a recipe and of a decided
config hold no `auto` of what is decided by then.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Never, TypeVar

from bertcli.config.finetune import FinetuneConfig, FinetuneTrainingConfig
from bertcli.config.load import check_config, load_either_config
from bertcli.config.model import ModelConfig
from bertcli.config.schema import DataConfig, PretrainConfig, TokenizerConfig, TrainingConfig
from bertcli.config.section import AUTO, Auto, LoopConfig, Section

# Sections come before the configs that hold them: pickle finds a class by its name in this module.
TokenizerRecipe = TokenizerConfig[Never]
ModelRecipe = ModelConfig[Never]
DataRecipe = DataConfig[Never, Auto]
TrainingRecipe = TrainingConfig[Never, Auto]
PretrainRecipe = PretrainConfig[Never, Auto]
"""A pretraining run in which text, family and steps have decided."""
FinetuneTrainingRecipe = FinetuneTrainingConfig[Never, Auto]
FinetuneRecipe = FinetuneConfig[Never, Auto]
"""A fine-tuning run in which the weights of the model have decided."""
LoopRecipe = LoopConfig[Never, Auto]
"""The optimizer's steps of a run of either kind, before the machine decides."""

DecidedData = DataConfig[Never, Never]
DecidedTraining = TrainingConfig[Never, Never]
DecidedPretraining = PretrainConfig[Never, Never]
"""A pretraining run in which everything is decided."""
DecidedFinetuneTraining = FinetuneTrainingConfig[Never, Never]
DecidedFinetuning = FinetuneConfig[Never, Never]
"""A fine-tuning run in which everything is decided."""
DecidedLoop = LoopConfig[Never, Never]
"""The optimizer's steps of a run of either kind, as they are taken."""

Kind = TypeVar("Kind", bound=Section)
_DECIDED = ("tokenizer", "data", "model", "training")
"""The sections with keys that are decided."""


def load_config_of_run(path: Path) -> PretrainRecipe | FinetuneConfig:
    """Load `config.yaml` of a run folder. Raises `UserError` as `load_either_config`."""
    config = load_either_config(path)
    return as_kind(PretrainRecipe, config, {}) if isinstance(config, PretrainConfig) else config


def with_values(section: Kind, values: Mapping[str, Any]) -> Kind:
    """A copy with other values: key -> value; for a section, a mapping of the keys that change in it.

    Raises `UserError` if a value is impossible.
    """
    return as_kind(type(section), section, values)


def as_kind(kind: type[Kind], section: Section, values: Mapping[str, Any]) -> Kind:
    """The section as another kind of section with the same keys; otherwise as `with_values`."""
    return check_config(kind, _given(section, values), "the config")


def _given(section: Section, values: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that are not left to their defaults. A default is no choice of the user, also in the copy."""
    given = section.model_dump(exclude_unset=True)
    for key, value in values.items():
        old = getattr(section, key)
        inner = isinstance(old, Section) and isinstance(value, Mapping)
        given[key] = _given(old, value) if inner else value
    return given


def decided_loop(training: LoopRecipe, values: Mapping[str, Any]) -> DecidedLoop:
    """The section `training` with the values that the machine decides."""
    kind = DecidedFinetuneTraining if isinstance(training, FinetuneTrainingConfig) else DecidedTraining
    return as_kind(kind, training, values)


def with_decisions(config: Kind, values: Mapping[str, Mapping[str, Any]]) -> Kind:
    """The config with these values in place of `auto`; other keys stay. `values`: section -> key -> value."""
    adopted = {
        section: {key: value for key, value in own.items() if getattr(getattr(config, section), key) == AUTO}
        for section, own in values.items()
    }
    return with_values(config, adopted)


def with_decisions_of(config: Kind, saved: Kind) -> Kind:
    """The config with the saved run's value in place of each auto: a resume decides nothing again."""
    sections = [name for name in _DECIDED if isinstance(getattr(saved, name, None), Section)]
    return with_decisions(config, {name: dict(getattr(saved, name)) for name in sections})
