"""The files of a model -> the model with all its heads; a folder or TensorFlow checkpoint -> a new folder."""

import random
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from bertcli.families.registry import FAMILIES
from bertcli.folders.config_file import NEW_VOCABULARY, read_architecture
from bertcli.folders.fill import LoadReport, build_from
from bertcli.folders.lengths import trained_length
from bertcli.folders.locate import GENERATOR, resolve_model
from bertcli.folders.model_files import Declaration, ModelFiles, read_model_files, write_model_files
from bertcli.folders.sealed import check_new, write_new
from bertcli.folders.sentence_transformers import SENTENCE_FILES, read_pooling
from bertcli.folders.task_folder import declare_task, task_model, task_type
from bertcli.folders.tf_checkpoint import TfCheckpoint
from bertcli.folders.weights import name_from_tensorflow
from bertcli.model.encoder import BodyModel
from bertcli.model.pretraining import PretrainingModel
from bertcli.model.task_models import PooledModel
from bertcli.system.errors import UserError
from bertcli.system.files import has_file
from bertcli.system.formats import read_json
from bertcli.tokenizer.folder import read_vocabulary
from bertcli.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True)
class WithHeads:
    """A model with all heads that its files hold; `declared` is for `write_model_files`."""

    model: BodyModel
    report: LoadReport
    declared: Declaration


def with_heads(files: ModelFiles, encoder_alone: bool = False) -> WithHeads:
    """The model with all heads that its files hold, or `encoder_alone`; raises as `fill.build_from`."""
    length = trained_length(files.where.parent)
    notes = {NEW_VOCABULARY: True} if files.config.get(NEW_VOCABULARY) is True else {}
    if encoder_alone:
        built = build_from(files, lambda: PooledModel(files.architecture, pooler=False))
        return WithHeads(*built, Declaration("encoder", notes, length))
    if task_type(files.config, files.family) is not None:
        task = task_model(files)
        return WithHeads(
            task.model, task.report, declare_task(task.settings, task.labels, trained_length=length)
        )
    sizes, pooler = files.architecture, files.holds("pooler.dense.weight")
    pairs = pooler and files.holds("pair_head.dense.weight")
    if files.holds("mlm_head.bias"):
        sizes = replace(sizes, mask_decoder=files.holds_mask_decoder)
        built = build_from(files, lambda: PretrainingModel(sizes, pairs))
        kind = "pretraining" if pairs else "masked-lm"
    elif files.holds("rtd_head.dense.weight") and "discriminator" in files.family.classes:
        built = build_from(files, lambda: PooledModel(sizes, pooler=False, rtd_head=True))
        kind = "discriminator"
    else:
        built = build_from(files, lambda: PooledModel(sizes, pooler, pair_head=pairs))
        kind = "pairs" if pairs else "encoder"
    return WithHeads(*built, Declaration(kind, notes, length))


_OPTIMIZER = re.compile(r".+/adam_[mv]|(.+/)?(global_step|beta[12]_power)")
"""Variables that only training needs: Adam's moments, the step."""


def find_tf_checkpoint(path: Path) -> Path | None:
    """The prefix of the checkpoint `path`, or of the one in the folder `path`; None if there is none.

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
        cased: whether the tokenizer keeps upper case; None: it does if the vocabulary has any.

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
    """True if any piece has upper case, except the special tokens in `[...]`."""
    return any(piece != piece.lower() for piece in vocabulary if not piece.startswith("["))


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
    """The result of `convert`.

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
        cased: whether a TensorFlow checkpoint is cased; None: it is if its vocabulary has upper case.

    Raises:
        UserError: bad input; `destination` is not empty, cannot be written, or has other outputs.
    """
    check_new(destination)  # before much is read
    files, optimizer = _read(source, cased)
    ours = with_heads(files)

    def fill(partial: Path) -> float:
        write_model_files(partial, ours.model, files.tokenizer, declared=ours.declared)
        carry_files(files.where.parent, partial)
        if (generator := files.where.parent / GENERATOR).is_dir():
            theirs = with_heads(read := read_model_files(generator))
            write_model_files(partial / GENERATOR, theirs.model, read.tokenizer, declared=theirs.declared)
        return _compare(ours, files.tokenizer, read_model_files(partial))

    difference = write_new(destination, fill)
    return Converted(ours.report, optimizer, lowercase=files.tokenizer.lowercase, difference=difference)


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


def carry_files(source: Path, destination: Path) -> None:
    """Copy the card of a model, and the files of sentence-transformers (`SENTENCE_FILES`)."""
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
