"""What a user calls MODEL -> the folder with its `config.json`."""

from __future__ import annotations

from pathlib import Path

from bertcli.config.schema import PretrainConfig
from bertcli.errors import UserError
from bertcli.hf.hub import download, is_hub_id
from bertcli.hf.init_from import adopt_folder
from bertcli.owned.run_layout import RunLayout, checkpoint_model

WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""In the order of preference; an index names the files of a model that was split up."""
VOCABULARY_FILES = ("vocab.txt", "tokenizer.json")


def resolve_model(path: Path | str) -> Path:
    """A run folder, its `model/`, a checkpoint, any Hugging Face BERT folder or a hub id -> the model folder.

    A run folder means its finished `model/`, else the model of its newest checkpoint. What exists here is
    never looked for on the hub.
    Raises `UserError` where nothing is there, or no model is in it.
    """
    path = Path(path)
    if not path.exists() and is_hub_id(str(path)):
        path = download(str(path))
    if not path.exists():
        raise UserError(
            f"{path}: no such folder. MODEL is a run folder, a model folder, a checkpoint, or a model's "
            f"id on the Hugging Face hub (org/name)."
        )
    if not path.is_dir():
        raise UserError(f"{path}: is a file. MODEL is the folder that holds config.json and the weights.")
    run = RunLayout(path)
    candidates = [path, run.model, *map(checkpoint_model, run.steps())]
    for candidate in candidates:
        if (candidate / "config.json").is_file():
            check_folder(candidate)
            return candidate
    if run.config.is_file():
        raise UserError(
            f"{path}: a run that has not saved a model yet (no model/, no checkpoints/step-*/model). "
            f"Let it reach its first checkpoint, or go on with it: --resume"
        )
    check_folder(path)
    raise AssertionError("unreachable: a folder without config.json fails the check")


def locate_init_from(config: PretrainConfig) -> PretrainConfig:
    """`model.init_from` as the model folder itself, where a run folder or a checkpoint is named.

    Sizes and vocabulary become those of the folder: `hf.init_from.adopt_folder`.
    """
    if config.model.init_from is None:
        return config
    folder = resolve_model(config.model.init_from)
    model = config.model.model_copy(update={"init_from": str(folder)})
    return adopt_folder(config.model_copy(update={"model": model}), folder)


def find_weights(folder: Path) -> Path | None:
    """The weight file of `folder` that will be read; None: it has none."""
    return next((folder / name for name in WEIGHT_FILES if (folder / name).is_file()), None)


def check_folder(folder: Path) -> Path:
    """The weight file of a complete model folder. Raises `UserError` naming all that is missing."""
    missing = []
    if not (folder / "config.json").is_file():
        missing.append("config.json (the sizes)")
    weights = find_weights(folder)
    if weights is None:
        missing.append(f"weights (one of {', '.join(WEIGHT_FILES)})")
    if not any((folder / name).is_file() for name in VOCABULARY_FILES):
        missing.append(f"a vocabulary (one of {', '.join(VOCABULARY_FILES)})")
    if weights is None and any(folder.glob("*.index")):
        raise UserError(
            f"{folder}: holds a TensorFlow checkpoint; convert it first: bertcli convert {folder} DESTINATION"
        )
    if missing or weights is None:
        raise UserError(
            f"{folder}: no complete model folder; missing: {'; '.join(missing)}. Give the folder "
            f"that bertcli pretrain or transformers' save_pretrained wrote, the tokenizer saved in it too."
        )
    return weights
