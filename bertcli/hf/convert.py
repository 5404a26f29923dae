"""Any model folder, also Google's TensorFlow checkpoints -> a clean folder with the same outputs."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from bertcli.errors import UserError
from bertcli.files import disk_errors, has_file
from bertcli.hf.fill import LoadReport
from bertcli.hf.from_tensorflow import find_tf_checkpoint, read_tf_checkpoint
from bertcli.hf.locate import resolve_model
from bertcli.hf.model_files import ModelFiles, read_model_files, write_model_files
from bertcli.hf.sentence_transformers import SENTENCE_FILES, read_pooling
from bertcli.hf.with_heads import WithHeads, with_heads
from bertcli.model.task_models import PooledModel
from bertcli.owned.folders import write_folder
from bertcli.text.tokenizer import Tokenizer

TOLERANCE = 1e-6
"""Largest allowed difference of an output; the same weights on the same machine differ by 0."""
_CARRIED = ("README.md", *SENTENCE_FILES)
"""Files that are copied without a change."""
_SENTENCES = (
    "It was a dark and stormy night; the rain fell in torrents.",
    "Zürich, l'été: 3,5 °C? ÀÉÎ naïve 東京 Привет",
)
_NUM_PIECES = 60


@dataclass(frozen=True)
class Converted:
    """What `convert` did.

    Attributes:
        report: what became of the source's weights; none is new.
        optimizer: the variables of a TensorFlow checkpoint that only its training needed.
        lowercase: whether the tokenizer lowercases.
        difference: the largest absolute difference between an output of the source and of the result.
    """

    report: LoadReport
    optimizer: tuple[str, ...]
    lowercase: bool
    difference: float


def convert(source: Path, destination: Path, cased: bool | None) -> Converted:
    """Write the weights, tokenizer and heads of `source` to `destination`; check that the outputs are equal.

    Args:
        source: what `resolve_model` accepts, or the folder or the prefix of a TensorFlow checkpoint.
        destination: a new folder, or an empty one. It appears only once it is complete and checked.
        cased: for a TensorFlow checkpoint; None: cased if its vocabulary has upper case.

    Raises:
        UserError: bad input; `destination` is not empty, cannot be written, or has other outputs.
    """
    check_new(destination)
    files, optimizer = _read(source, cased)
    ours = with_heads(files)
    differences = []

    def fill(partial: Path) -> None:
        write_model_files(partial, ours.model, files.tokenizer, declared=ours.declared)
        carry_files(files.where.parent, partial)
        differences.append(_compare(ours, files.tokenizer, read_model_files(partial)))

    with disk_errors(
        f"{destination}: could not be written", "and try again", "name a folder that can be written"
    ):
        write_folder(destination.absolute(), fill, sealed=False)
    return Converted(ours.report, optimizer, lowercase=files.tokenizer.lowercase, difference=differences[0])


def _read(source: Path, cased: bool | None) -> tuple[ModelFiles, tuple[str, ...]]:
    prefix = None if has_file(source / "config.json") else find_tf_checkpoint(source)
    if prefix is not None:
        return read_tf_checkpoint(prefix, cased)
    if cased is not None:
        raise UserError(
            f"--cased and --uncased are for TensorFlow checkpoints; the tokenizer of {source} is cased or "
            "uncased by itself; leave the option out"
        )
    folder = resolve_model(source)
    read_pooling(folder)  # refuses a folder whose sentence vectors bertcli could not compute
    return read_model_files(folder), ()


def check_new(destination: Path) -> None:
    """Raise `UserError` unless `destination` is an empty folder, or nothing yet."""
    if os.path.lexists(destination) and (not destination.is_dir() or any(destination.iterdir())):
        raise UserError(f"{destination}: exists already; name a new folder, or an empty one")


def carry_files(source: Path, destination: Path) -> None:
    """Copy the card of a model, and how a sentence-transformers folder computes vectors."""
    for path in [path for pattern in _CARRIED for path in source.glob(pattern)]:
        copy = destination / path.relative_to(source)
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, copy)


@torch.inference_mode()
def _compare(ours: WithHeads, tokenizer: Tokenizer, written: ModelFiles) -> float:
    """The largest difference of any output, on texts with pieces from all parts of the vocabulary."""
    pieces = random.Random(0).choices(range(tokenizer.vocab_size), k=_NUM_PIECES)
    texts = [*_SENTENCES, tokenizer.mask_token, " ".join(tokenizer.token(piece) for piece in pieces)]
    encoded = tokenizer.encode_batch(texts)
    if encoded != written.tokenizer.encode_batch(texts):
        raise UserError(
            "the tokenizer that was written encodes differently from the source's; nothing was kept"
        )
    again = with_heads(written)
    difference = 0.0
    for ids in encoded:
        row = tokenizer.frame.row(ids).ids[: written.architecture.usable_positions]
        ids_1T = torch.tensor([row])
        for one, other in zip(_outputs(ours.model, ids_1T), _outputs(again.model, ids_1T), strict=True):
            difference = max(difference, float((one - other).abs().max()))
    if not difference <= TOLERANCE:  # NaN fails as well
        raise UserError(
            f"the model that was written has an output that differs from the source's by {difference:g}, "
            f"more than {TOLERANCE:g}; nothing was kept. Try again on another disk"
        )
    return difference


def _outputs(model: nn.Module, ids_1T: Tensor) -> list[Tensor]:
    """Every output of the model for one row."""
    output = model.eval()(ids_1T, torch.zeros_like(ids_1T))
    outputs = [output] if isinstance(output, Tensor) else [each for each in output if each is not None]
    if isinstance(model, PooledModel) and model.pooler is not None:
        outputs.append(model.pooler(outputs[0][:, 0]))
        if model.pair_head is not None:
            outputs.append(model.pair_head(outputs[-1]))
    if isinstance(model, PooledModel) and model.rtd_head is not None:
        outputs.append(model.rtd_head(outputs[0], outputs[0][:, :1]))
    return outputs
