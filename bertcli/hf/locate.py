"""The MODEL argument of the command line -> the folder with its `config.json`."""

from __future__ import annotations

from pathlib import Path

from bertcli.config.schema import PretrainConfig
from bertcli.errors import UserError
from bertcli.hf.hub import download, is_hub_id
from bertcli.hf.init_from import adopt_folder, adopt_vocabulary
from bertcli.owned.run_layout import RunLayout, checkpoint_model
from bertcli.text.tokenizer_files import VOCABULARY_FILES

WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
"""In the order of preference; an index lists the files of a model in several parts."""


def resolve_model(path: Path | str) -> Path:
    """A run folder, its `model/`, a checkpoint, any Hugging Face folder or a hub id -> the model folder.

    Of a run folder: its finished `model/`, else the model of its newest checkpoint. A local path always comes
    before the hub. Raises `UserError` if there is nothing, or no model in it.
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
    found = next((folder for folder in candidates if (folder / "config.json").is_file()), None)
    if found is None and run.config.is_file():
        raise UserError(
            f"{path}: a run that has not saved a model yet (no model/, no checkpoints/step-*/model). "
            f"Let it reach its first checkpoint, or continue it with --resume"
        )
    check_folder(found or path)
    return found or path


def locate_init_from(config: PretrainConfig) -> PretrainConfig:
    """`config` with the model folder itself as `model.init_from`, which may name a run or a checkpoint.

    Sizes and vocabulary become those of the folder (`hf.init_from.adopt_folder`), the vocabulary of a new
    student that of its teacher.
    """
    if config.model.init_from is None:
        teacher = config.distillation and config.distillation.teacher
        return config if teacher is None else adopt_vocabulary(config, resolve_model(teacher))
    folder = resolve_model(config.model.init_from)
    model = config.model.model_copy(update={"init_from": str(folder)})
    return adopt_folder(config.model_copy(update={"model": model}), folder)


def check_folder(folder: Path) -> Path:
    """The weight file of a complete model folder. Raises `UserError` that lists what is missing."""
    missing = []
    if not (folder / "config.json").is_file():
        missing.append("config.json (the sizes)")
    weights = next((folder / name for name in WEIGHT_FILES if (folder / name).is_file()), None)
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
            f"{folder}: not a complete model folder; missing: {'; '.join(missing)}. Give a folder that "
            f"bertcli pretrain or transformers' save_pretrained wrote, with the tokenizer saved there too."
        )
    return weights
