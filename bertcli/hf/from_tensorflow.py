"""Google's release (`bert_model.ckpt.*`, `bert_config.json`, `vocab.txt`) -> `ModelFiles`."""

from __future__ import annotations

import re
from pathlib import Path

import torch

from bertcli.errors import UserError
from bertcli.families.registry import FAMILIES
from bertcli.files import has_file
from bertcli.hf.config_file import read_architecture
from bertcli.hf.model_files import ModelFiles
from bertcli.hf.names import name_from_tensorflow
from bertcli.hf.tf_checkpoint import TfCheckpoint
from bertcli.text.json_file import read_json
from bertcli.text.tokenizer import Tokenizer
from bertcli.text.tokenizer_files import read_vocabulary

_OPTIMIZER = re.compile(r".+/adam_[mv]|(.+/)?(global_step|beta[12]_power)")
"""Variables that only training needs: Adam's moments, the step."""


def find_tf_checkpoint(path: Path) -> Path | None:
    """The prefix of the checkpoint `path`, or of the one in the folder `path`; None: there is none.

    Raises `UserError` if a folder holds several.
    """
    if path.suffix == ".index" and has_file(path):
        return path.with_suffix("")
    if has_file(path.parent / f"{path.name}.index"):
        return path
    prefixes = sorted(index.with_suffix("") for index in path.glob("*.index"))
    if len(prefixes) > 1:
        names = ", ".join(prefix.name for prefix in prefixes)
        raise UserError(f"{path}: holds several checkpoints ({names}); name one, for example {prefixes[-1]}")
    return prefixes[0] if prefixes else None


def read_tf_checkpoint(prefix: Path, cased: bool | None) -> tuple[ModelFiles, tuple[str, ...]]:
    """The model of a checkpoint, and the names of the variables that only its training needed.

    Args:
        prefix: the checkpoint's path without `.index`.
        cased: whether the tokenizer keeps upper case; None: if the vocabulary has any.

    Raises:
        UserError: `bert_config.json`, `vocab.txt` or a part of the checkpoint is missing, damaged or belongs
            to another model.
    """
    folder = prefix.parent
    config, vocabulary = folder / "bert_config.json", folder / "vocab.txt"
    if missing := [file.name for file in (config, vocabulary) if not has_file(file)]:
        raise UserError(
            f"{prefix}: {' and '.join(missing)} is missing beside the checkpoint. Copy it there from the "
            f"release that the checkpoint belongs to."
        )
    if cased is None:
        cased = is_cased(read_vocabulary(vocabulary))
    tokenizer = Tokenizer.load(vocabulary, lowercase=not cased)
    architecture = read_architecture(config)
    family = FAMILIES[architecture.family]

    checkpoint = TfCheckpoint(prefix)
    optimizer = tuple(name for name in checkpoint.entries if _OPTIMIZER.fullmatch(name))
    names = {name: name_from_tensorflow(family, name) for name in checkpoint.entries if name not in optimizer}
    if unknown := [name for name, theirs in names.items() if theirs is None]:
        raise UserError(
            f"{checkpoint.index}: unknown variables: {', '.join(unknown)}. bertcli reads a "
            f"{family.name} that Google's run_pretraining.py wrote."
        )
    weights = {}
    for name, theirs in names.items():
        values = torch.from_numpy(checkpoint.read(name))
        # Dense layers store their matrix as [in, out]; the other matrices need no transpose.
        weights[str(theirs)] = values.T.contiguous() if name.endswith("/kernel") else values
    files = ModelFiles(
        checkpoint.index, read_json(config), architecture, tokenizer=tokenizer, weights=weights
    )
    return files, optimizer


def is_cased(vocabulary: list[str]) -> bool:
    """Whether any piece has upper case, except the special tokens in `[...]`."""
    return any(piece != piece.lower() for piece in vocabulary if not piece.startswith("["))
