"""The value of `data.objective` -> the model that learns it, its task, and its folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from bertcli.batches.pair_rules import PAIR_RULES
from bertcli.config.model import ModelConfig
from bertcli.config.schema import PretrainConfig
from bertcli.families.family import Sharing
from bertcli.folders.config_file import new_architecture, read_architecture, sharing
from bertcli.folders.model_folder import (
    load_model_folder,
    load_rtd_folder,
    save_model_folder,
    save_rtd_folder,
)
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import PretrainingModel, ReplacedTokenModel
from bertcli.objectives.masked_language import MaskedLanguage
from bertcli.objectives.replaced_tokens import ReplacedTokens
from bertcli.system.terminal import say
from bertcli.tokenizer.tokenizer import Tokenizer

Model = PretrainingModel | ReplacedTokenModel
PretrainingTask = MaskedLanguage | ReplacedTokens


def start_model(config: PretrainConfig, tokenizer: Tokenizer) -> Model:
    """The model with fresh weights from torch's generator, or with those of `model.init_from`.

    Lines for the user tell which weights were loaded and which are new.

    Raises:
        UserError: the folder cannot be read; the family cannot have these sizes.
    """
    objective, dropout = config.data.objective, config.model.dropout
    if config.model.init_from is None:
        sizes = new_architecture(config.model, tokenizer.vocab_size, tokenizer.pad_id, objective=objective)
        return build_model(config.model, objective, sizes)
    source = Path(config.model.init_from)
    if objective == "rtd":
        say(f"starting from the weights of {source} and its generator")
        return load_rtd_folder(source, _sharing(config, source), dropout)
    loaded = load_model_folder(
        source, pairs=PAIR_RULES[objective].is_pair, dropout=dropout, mask_decoder=True
    )
    say(f"starting from the weights of {source} ({len(loaded.report.loaded)} tensors)")
    if loaded.report.new:
        say(f"  new ({', '.join(loaded.report.new_parts())}): {', '.join(loaded.report.new)}")
    if loaded.report.left_aside:
        say(f"  left aside: {', '.join(loaded.report.left_aside)}")
    return loaded.model


def words_of(config: PretrainConfig, source: Path) -> PretrainingModel | None:
    """The part of a folder's model that predicts words (see `predicts_words`); None if it has none."""
    if config.data.objective == "rtd":
        return load_rtd_folder(source, _sharing(config, source)).generator
    loaded = load_model_folder(source, pairs=False, mask_decoder=True)
    return loaded.model if loaded.report.has("mlm_head") else None


def build_model(config: ModelConfig, objective: str, sizes: Architecture) -> Model:
    """Build the model of an objective with fresh weights."""
    if objective == "rtd":
        return ReplacedTokenModel(sizes, sharing(config, sizes.family))
    return PretrainingModel(sizes, pair_head=PAIR_RULES[objective].is_pair)


def objective_task(
    objective: str, rtd_weight: float = 50.0, mask_rate: float = 0.15, compiled: bool = False
) -> PretrainingTask:
    """The task of an objective; `mask_rate` is that of its batches."""
    if objective == "rtd":
        return ReplacedTokens(rtd_weight, mask_rate, compiled=compiled)
    return MaskedLanguage(PAIR_RULES[objective], compiled=compiled)


def predicts_words(model: Model) -> PretrainingModel:
    """The model with the MLM head: the model itself, or its generator."""
    return model.generator if isinstance(model, ReplacedTokenModel) else model


def words_alone(model: Model, weights: Mapping[str, Tensor]) -> PretrainingModel:
    """A copy of `predicts_words(model)` with these full weights, which are not sharded over ranks."""
    words = predicts_words(model)
    prefix = "" if words is model else "generator."
    copy = PretrainingModel(words.architecture, pair_head=words.pair_head is not None)
    copy.load_state_dict(
        {name.removeprefix(prefix): each for name, each in weights.items() if name.startswith(prefix)}
    )
    return copy


def save_folder(
    folder: Path,
    model: Model,
    tokenizer: Tokenizer,
    trained_length: int | None,
    weights: Mapping[str, Tensor],
    card: str | None,
) -> None:
    """Write the model's folder with these weights, file by file.

    `trained_length` is explained at `folders.model_files.Declaration`.
    """
    given = {"trained_length": trained_length, "weights": weights, "card": card}
    if isinstance(model, ReplacedTokenModel):
        save_rtd_folder(folder, model, tokenizer, **given)
    else:
        save_model_folder(folder, model, tokenizer, **given)


def load_saved(config: PretrainConfig, folder: Path) -> Model:
    """The model in a folder of the run, as it was trained. Raises `UserError` as `load_model_folder` does."""
    if config.data.objective == "rtd":
        return load_rtd_folder(folder, _sharing(config, folder))
    return load_model_folder(folder, mask_decoder=True).model


def read_weights(config: PretrainConfig, folder: Path) -> dict[str, Tensor]:
    """The weights in a folder of the run, by their names in the model."""
    return load_saved(config, folder).state_dict()


def _sharing(config: PretrainConfig, folder: Path) -> Sharing:
    return sharing(config.model, read_architecture(folder / "config.json").family)
