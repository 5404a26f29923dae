"""Any BERT, Google's TensorFlow checkpoints included -> a clean folder, compared with what it came from."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bertcli.errors import UserError
from bertcli.files import disk_errors
from bertcli.hf.fill import LoadReport, build_from
from bertcli.hf.from_tensorflow import find_tf_checkpoint, read_tf_checkpoint
from bertcli.hf.lengths import TRAINED_LENGTH
from bertcli.hf.locate import resolve_model
from bertcli.hf.model_files import ModelFiles, read_model_files, write_model_files
from bertcli.hf.sentence_transformers import SENTENCE_FILES, read_pooling
from bertcli.hf.task_config import task_keys, task_type
from bertcli.hf.task_folder import task_model
from bertcli.model.pretraining import PretrainingModel
from bertcli.model.task_models import PooledModel
from bertcli.owned.folders import write_folder
from bertcli.text.tokenizer import Tokenizer

TOLERANCE = 1e-6
"""Of any output; the same weights on the same machine differ by 0."""
_CARRIED = ("README.md", *SENTENCE_FILES)
"""What is copied as it is."""
_SENTENCES = (
    "It was a dark and stormy night; the rain fell in torrents.",
    "Zürich, l'été: 3,5 °C? ÀÉÎ naïve 東京 Привет",
)
_NUM_PIECES = 60


@dataclass(frozen=True)
class Converted:
    """What `convert` did.

    Attributes:
        report: of the source's weights; nothing is new.
        optimizer: the variables of a TensorFlow checkpoint that only its training needed.
        lowercase: whether the tokenizer lowercases.
        difference: the largest absolute one between an output of the source and of the result.
    """

    report: LoadReport
    optimizer: tuple[str, ...]
    lowercase: bool
    difference: float


@dataclass(frozen=True)
class _Whole:
    """A model with all the heads that its files bring; `kind` and `keys` are for `write_model_files`."""

    model: nn.Module
    report: LoadReport
    kind: str
    keys: Mapping[str, Any]


def convert(source: Path, destination: Path, cased: bool | None) -> Converted:
    """Write `destination` with the weights, tokenizer and heads of `source`; check that it computes the same.

    Args:
        source: whatever `resolve_model` finds, or a TensorFlow checkpoint: its folder or its prefix.
        destination: a new folder, or an empty one. It appears only once it is whole and checked.
        cased: for a TensorFlow checkpoint; None: whether its vocabulary has upper case.

    Raises:
        UserError: bad input; `destination` is in use, cannot be written, or computes something else.
    """
    if os.path.lexists(destination) and (not destination.is_dir() or any(destination.iterdir())):
        raise UserError(f"{destination}: exists already; name a new folder, or an empty one")
    files, optimizer = _read(source, cased)
    whole = _build_whole(files)
    differences = []

    def fill(partial: Path) -> None:
        write_model_files(partial, whole.model, files.tokenizer, kind=whole.kind, more=whole.keys)
        _carry(files.where.parent, partial)
        differences.append(_compare(whole, files.tokenizer, read_model_files(partial)))

    with disk_errors(
        f"{destination}: could not be written", "and try again", "name a folder that can be written"
    ):
        write_folder(destination.absolute(), fill, sealed=False)
    return Converted(whole.report, optimizer, lowercase=files.tokenizer.lowercase, difference=differences[0])


def _read(source: Path, cased: bool | None) -> tuple[ModelFiles, tuple[str, ...]]:
    prefix = None if (source / "config.json").is_file() else find_tf_checkpoint(source)
    if prefix is not None:
        return read_tf_checkpoint(prefix, cased)
    if cased is not None:
        raise UserError(
            f"--cased and --uncased are for TensorFlow checkpoints; the tokenizer of {source} says it itself"
        )
    folder = resolve_model(source)
    read_pooling(folder)  # a folder whose vectors could not be made again is refused here
    return read_model_files(folder), ()


def _build_whole(files: ModelFiles) -> _Whole:
    if task_type(files.config, files.family) is not None:
        task = task_model(files)
        keys = task_keys(task.settings, task.labels)
        return _Whole(task.model, task.report, task.settings.type, keys=keys)
    sizes, pooler = files.architecture, files.holds("pooler.dense.weight")
    pairs = pooler and files.holds("pair_head.dense.weight")
    if files.holds("mlm_head.bias"):
        model, report = build_from(files, lambda: PretrainingModel(sizes, pairs))
        keys = {key: value for key, value in files.config.items() if key == TRAINED_LENGTH}
        return _Whole(model, report, "pretraining" if pairs else "masked-lm", keys=keys)
    model, report = build_from(files, lambda: PooledModel(sizes, pooler, pair_head=pairs))
    return _Whole(model, report, "pairs" if pairs else "encoder", keys={})


def _carry(source: Path, destination: Path) -> None:
    for path in [path for pattern in _CARRIED for path in source.glob(pattern)]:
        copy = destination / path.relative_to(source)
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, copy)


@torch.inference_mode()
def _compare(whole: _Whole, tokenizer: Tokenizer, written: ModelFiles) -> float:
    """The largest difference of any output, on a text with pieces from all over the vocabulary."""
    pieces = random.Random(0).choices(range(tokenizer.vocab_size), k=_NUM_PIECES)
    texts = [*_SENTENCES, tokenizer.mask_token, " ".join(tokenizer.token(piece) for piece in pieces)]
    encoded = tokenizer.encode_batch(texts)
    if encoded != written.tokenizer.encode_batch(texts):
        raise UserError(
            "the tokenizer that was written encodes differently from the source's; nothing was kept"
        )
    again = _build_whole(written)
    difference = 0.0
    for ids in encoded:
        row = tokenizer.frame.row(ids).ids[: written.architecture.usable_positions]
        ids_1T = torch.tensor([row])
        for ours, theirs in zip(_outputs(whole.model, ids_1T), _outputs(again.model, ids_1T), strict=True):
            difference = max(difference, float((ours - theirs).abs().max()))
    if not difference <= TOLERANCE:  # not a number is no agreement either
        raise UserError(
            f"the model that was written has an output that differs from the source's by {difference:g}, "
            f"more than {TOLERANCE:g}; nothing was kept. Try again on another disk"
        )
    return difference


def _outputs(model: nn.Module, ids_1T: Tensor) -> list[Tensor]:
    """All that the model computes of one row."""
    output = model.eval()(ids_1T, torch.zeros_like(ids_1T))
    outputs = [output] if isinstance(output, Tensor) else [each for each in output if each is not None]
    if isinstance(model, PooledModel) and model.pooler is not None:
        outputs.append(model.pooler(outputs[0][:, 0]))
        if model.pair_head is not None:
            outputs.append(model.pair_head(outputs[-1]))
    return outputs
