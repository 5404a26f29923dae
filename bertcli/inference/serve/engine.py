"""A MODEL of `bertcli serve` -> what it answers, computed by the faster of two engines."""

from __future__ import annotations

import hashlib
import json
import math
import os
import statistics
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from bertcli.batches.batch import batch_of
from bertcli.folders import locate
from bertcli.folders.config_file import read_architecture
from bertcli.folders.model_folder import load_model_folder
from bertcli.folders.onnx_folder import export_onnx
from bertcli.folders.onnx_source import read_source
from bertcli.folders.sealed import remove_own, seal
from bertcli.folders.sentence_transformers import PLAIN, SENTENCE_FILES, read_pooling
from bertcli.folders.task_folder import folder_task
from bertcli.inference.fill_mask import MaskFiller, Masks
from bertcli.inference.onnx_model import import_onnxruntime
from bertcli.inference.opened import Compute, open_encoder, open_task
from bertcli.inference.predict import Predictions, Runner, default_batch_size
from bertcli.inference.vectors import Embedder, Vectors
from bertcli.model.encoder import BodyModel
from bertcli.system.errors import UserError
from bertcli.system.exhausted import describe_os_error
from bertcli.system.terminal import say
from bertcli.tasks.supervised import task_class
from bertcli.tokenizer.frame import Row
from bertcli.tokenizer.tokenizer import Tokenizer

Engine = Literal["bertcli", "onnxruntime"]


@dataclass(frozen=True)
class Served:
    """A model with a name, ready to answer.

    Attributes:
        engine: what computes, with the weights on `device` in `precision`.
        speeds: rows a second by engine, one at a time and `TOGETHER` at once; empty if there was no choice.
        longest: most tokens of a row.
        has_weights: whether `folder` shows how the model answers; an ONNX file does not.
        predictions, vectors, masks: its kinds of answers; None: the model does not give them. Vectors are as
            the folder says, `unit_vectors` have length 1, and `raw_vectors` are not scaled.
    """

    name: str
    folder: Path
    family: str
    engine: Engine
    device: torch.device
    precision: str
    longest: int
    has_weights: bool = True
    speeds: Mapping[str, list[float]] = field(default_factory=dict)
    predictions: Predictions | None = None
    vectors: Vectors | None = None
    unit_vectors: Vectors | None = None
    raw_vectors: Vectors | None = None
    masks: Masks | None = None

    @property
    def kinds(self) -> list[str]:
        """The names of our routes that it answers."""
        found = ["predict"] if self.predictions else []
        found += ["embed", "similarity"] if self.vectors else []
        return found + (["fill-mask"] if self.masks else [])

    @property
    def scores_texts(self) -> bool:
        """True if it gives each text, or each pair, a number for each label."""
        return self.predictions is not None and self.predictions.runner.task.head == "sequences"

    @property
    def ranks(self) -> bool:
        """True if it gives each pair of texts one number."""
        if self.predictions is None or not self.scores_texts:
            return False
        task = self.predictions.runner.task
        return len(task.labels) < 2 and task.num_texts(task.settings) == 2

    def as_json(self) -> dict[str, Any]:
        """What `/info` shows."""
        task = None if self.predictions is None else self.predictions.runner.task
        return {
            "name": self.name,
            "family": self.family,
            "task": None if task is None else task.type,
            "labels": None if task is None else list(task.labels),
            "answers": self.kinds,
            "max_tokens": self.longest,
            "engine": self.engine,
            "device": str(self.device),
            "precision": self.precision,
            "rows_per_second": self.speeds,
        }


def open_served(name: str, model: Path, compute: Compute, engine: Engine | None) -> Served:
    """Read a model for its answers. One that fills masks also gives vectors.

    Args:
        engine: the engine to compute with; None: the faster one. Models of masked words are always computed
            by bertcli, which predicts the masked words alone.

    Raises `UserError` as `open_task`, `open_encoder` and `load_model_folder`; also for an engine that cannot
    compute the model.
    """
    place = locate.find_onnx(model)
    folder = locate.resolve_model(model) if place is None else place.folder
    task, pooling = folder_task(folder), read_pooling(folder)
    answers = task is not None and task_class(task).head is not None and pooling is None
    if place is not None:
        if engine == "bertcli":
            raise UserError(f"--engine bertcli: {place.file} is an ONNX file, which onnxruntime runs")
        found: Any = (open_task if answers else open_encoder)(model, compute)[0]
        return _served(name, folder, "onnxruntime", found=found, has_weights=False)
    if task is None and pooling is None:
        loaded = load_model_folder(folder, pairs=False)
        if loaded.report.has("mlm_head"):
            return _with_masks(name, folder, loaded, compute=compute, engine=engine)
    found = (open_task if answers else open_encoder)(folder, compute)[0]
    if engine == "bertcli" or not _can_export(found, engine):
        return _served(name, folder, "bertcli", found=found)
    exported = _exported(folder, not answers, engine)
    if exported is None:
        return _served(name, folder, "bertcli", found=found)
    other = (open_task if answers else open_encoder)(exported, compute)[0]
    speeds = {} if engine else _speeds({"bertcli": found, "onnxruntime": other})
    if engine or math.prod(speeds["onnxruntime"]) > math.prod(speeds["bertcli"]):
        return _served(name, folder, "onnxruntime", found=other, speeds=speeds)
    return _served(name, folder, "bertcli", found=found, speeds=speeds)


def _served(name: str, folder: Path, engine: Engine, found: Any, **others: Any) -> Served:
    """The model of a `Runner` or an `Embedder`."""
    sizes = read_architecture(folder / "config.json")
    longest = sizes.usable_positions
    if isinstance(found, Embedder):
        others |= {"vectors": Vectors(found)}
        for kind, normalize in (("unit_vectors", True), ("raw_vectors", False)):
            same = found.pooling.normalize == normalize
            scaled = replace(found, pooling=replace(found.pooling, normalize=normalize))
            others[kind] = others["vectors"] if same else Vectors(scaled)
        longest = found.pooling.max_length or longest
    else:
        others |= {"predictions": Predictions(found)}
        longest = found.task.settings.max_length
    return Served(
        name,
        folder,
        sizes.family,
        engine=engine,
        device=found.device,
        precision=found.precision,
        longest=longest,
        **others,
    )


class _Body(nn.Module):
    """The encoder of a model with a head, on the same weights."""

    def __init__(self, model: BodyModel) -> None:
        super().__init__()
        self.body, self.architecture = model.body, model.architecture

    def forward(self, *rows: Any) -> Tensor:
        return self.body(*rows)


def _with_masks(name: str, folder: Path, loaded: Any, compute: Compute, engine: Engine | None) -> Served:
    if engine == "onnxruntime":
        raise UserError(f"--engine onnxruntime: {folder} fills masks, which bertcli computes; leave it out")
    device, precision = compute.of_weights()
    masks, body, size = Masks(MaskFiller(loaded, device)), _Body(loaded.model), default_batch_size(device)
    embedder: Any = Embedder(
        body,  # pyright: ignore[reportArgumentType]
        loaded.tokenizer,
        PLAIN,
        device=device,
        precision=precision,
        batch_size=size,
    )
    return _served(name, folder, "bertcli", found=embedder, masks=masks)


def _can_export(found: Runner | Embedder, engine: Engine | None) -> bool:
    """True if onnxruntime may compute the model. Raises `UserError` if it may not, and is asked for."""
    missing = [name for name in ("onnx", "onnxscript", "onnxruntime") if find_spec(name) is None]
    reason = f"{missing[0]} is not installed: pip install 'bertcli[onnx]'" if missing else ""
    if found.device.type != "cpu" or found.precision != "fp32":
        reason = f"the model computes on {found.device} in {found.precision}; onnxruntime on the CPU in fp32"
    if reason and engine:
        raise UserError(f"--engine onnxruntime: {reason}")
    return not reason


def _exported(folder: Path, encoder_alone: bool, engine: Engine | None) -> Path | None:
    """The model as ONNX, kept for the next start; None, with a message, if it cannot be written.

    The name of its folder depends on what decides the file: the model's files, and the versions of packages.
    An older export of the same model is removed. Raises `UserError` if it cannot be written, and `engine`
    asks for it.
    """
    import onnx

    onnxruntime = import_onnxruntime("a model is exported")
    found = {path for pattern in ("*", *SENTENCE_FILES) for path in folder.glob(pattern)}
    files = [(path.relative_to(folder), path.stat()) for path in sorted(found) if path.is_file()]
    state = [(str(name), each.st_size, each.st_mtime_ns) for name, each in files]
    versions = [version("bertcli"), torch.__version__, onnx.__version__, onnxruntime.__version__]
    key = json.dumps([str(folder.resolve()), state, versions, encoder_alone])
    kept = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bertcli" / "onnx"
    of_model, of_state = (
        hashlib.sha256(each.encode()).hexdigest() for each in (f"{folder.resolve()} {encoder_alone}", key)
    )
    place = kept / f"{of_model[:12]}-{of_state[:20]}"
    if place.exists():
        return place
    why = "" if engine else ", to see which engine is faster"
    say(f"{folder}: writing it as ONNX to {place}{why}; this is done once")
    try:
        kept.mkdir(parents=True, exist_ok=True)
        export_onnx(read_source(folder, encoder_alone), place, None)
    except Exception as error:  # of the exporter: any; the model is served all the same
        if place.exists():  # another server was quicker
            return place
        reason = describe_os_error(error) or str(error).strip().split("\n")[0]
        if engine:
            raise UserError(f"--engine onnxruntime: {folder} cannot be written as ONNX: {reason}") from None
        say(f"{folder}: computed by bertcli alone, since it cannot be written as ONNX: {reason}")
        return None
    with suppress(OSError):  # an export that is not sealed is never removed
        seal(place, place.name)
        for older in kept.glob(f"{of_model[:12]}-{'[0-9a-f]' * 20}"):
            if older != place:
                remove_own(older)
    return place


TOGETHER, _SECONDS, _REST = 16, 0.4, 0.01
"""Rows at once, and seconds of the measurement; of at least three rounds, the first does not count. After an
engine's turn its threads still run for some milliseconds, in which the other one must not begin."""
_ALONE, _LENGTHS = 32, range(8, 72, 4)


@torch.inference_mode()
def _speeds(engines: Mapping[str, Any]) -> dict[str, list[float]]:
    """Rows a second of each engine for one row of `_ALONE` tokens, and for `TOGETHER` rows of `_LENGTHS`.

    `engines`: the name of each -> its `Runner` or `Embedder`.
    """
    first = next(iter(engines.values()))
    tokenizer: Tokenizer = first.tokenizer
    longest = first.model.architecture.usable_positions
    rows = [_row(tokenizer, min(length, longest)) for length in (_ALONE, *_LENGTHS)]
    batches = [batch_of(some, tokenizer.pad_id, first.device) for some in (rows[:1], rows[1:])]
    taken: dict[tuple[str, int], list[float]] = {}
    begun, rounds = time.perf_counter(), 0
    while rounds < 3 or time.perf_counter() - begun < _SECONDS:
        for name, opened in engines.items():
            for size, batch in enumerate(batches):
                start = time.perf_counter()
                opened.model(*batch)
                taken.setdefault((name, size), []).append(time.perf_counter() - start)
            time.sleep(_REST)
        rounds += 1
    sizes = (1, TOGETHER)
    return {
        name: [round(sizes[at] / statistics.median(taken[name, at][1:]), 1) for at in (0, 1)]
        for name in engines
    }


def _row(tokenizer: Tokenizer, length: int) -> Row:
    """A row of so many tokens, whatever they mean."""
    ids = [number % tokenizer.vocab_size for number in range(1000, 1000 + length)]
    return tokenizer.frame.fit(ids, None, length)
