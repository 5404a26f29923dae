"""How far another form of a model gives the same answers, or the same vectors."""

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.batches.batch import RowBatch, batch_of
from bertcli.folders.onnx_graph import ExportedModel
from bertcli.folders.onnx_source import Source, weight_bytes
from bertcli.inference.onnx_model import HIDDEN, OnnxModel
from bertcli.inference.predict import Runner, default_batch_size
from bertcli.inference.vectors import Embedder
from bertcli.tasks.examples import Example
from bertcli.tasks.supervised import build_task
from bertcli.tokenizer.frame import Row

CPU = torch.device("cpu")
_SIZE = default_batch_size(CPU)
_HIDE_EVERY = 7
"""Every 7th token is masked for a model that fills masks, about as many as in pretraining."""


def agreement(source: Source, other: OnnxModel, examples: Sequence[Any]) -> dict[str, float]:
    """The agreement of a model's answers with those of another form of it.

    Returns:
        `mean_cosine` and `min_cosine` for vectors; `mean_difference` and `largest_difference` for values;
        else `equal`, the share of equal answers (labels, tags of words, choices, words for masks and labels
        of pairs), and `answers`, their number.
    """
    if source.exported.outputs == (HIDDEN,):
        one_ND, other_ND = (_vectors(source, model, examples) for model in (source.model, other))
        cosines_N = F.cosine_similarity(one_ND, other_ND)
        return {"mean_cosine": float(cosines_N.mean()), "min_cosine": float(cosines_N.min())}
    if source.settings is not None:
        answers = [_answers(source, model, examples) for model in (source.model, other)]
    else:
        answers = [_words(source, model, examples) for model in (source.exported, other)]
    pairs = list(zip(*answers, strict=True))
    if isinstance(pairs[0][0], float):
        differences = [abs(one - another) for one, another in pairs]
        return {
            "mean_difference": sum(differences) / len(differences),
            "largest_difference": max(differences),
        }
    return {"equal": sum(one == another for one, another in pairs) / len(pairs), "answers": len(pairs)}


def _vectors(source: Source, model: Any, examples: Sequence[Any]) -> Tensor:
    embedder = Embedder(
        model, source.tokenizer, source.pooling, device=CPU, precision="fp32", batch_size=_SIZE
    )
    return torch.stack([embedded.vector_D for embedded in embedder.embed(examples)])


def _answers(source: Source, model: nn.Module, examples: Sequence[Any]) -> list[Any]:
    assert source.settings is not None
    task = build_task(source.settings, source.labels)
    runner = Runner(model, task, source.tokenizer, device=CPU, precision="fp32", batch_size=_SIZE)
    found: list[Any] = []
    for prediction in runner.predict(examples, task.encode(examples, source.tokenizer)):
        found += task.parts(prediction)
    return found


@torch.inference_mode()
def _words(source: Source, model: ExportedModel | OnnxModel, examples: Sequence[Example]) -> list[Any]:
    """The answers of the heads of pretraining: likeliest words, replaced or not, the label of a pair."""
    kind, mask_id = source.exported.kind, source.tokenizer.mask_id
    fills, found = kind in ("masked-lm", "pretraining"), []
    for row in source.rows(examples):
        batch = batch_of([row], source.tokenizer.pad_id, CPU)
        hidden_T = torch.arange(row.length) % _HIDE_EVERY == 1
        ids_BT = batch.ids_BT.masked_fill(hidden_T, mask_id) if fills else batch.ids_BT
        if isinstance(model, OnnxModel):
            logits, *pair = model.run(ids_BT, batch.segments_BT)
        else:
            logits, *pair = model(ids_BT, torch.ones_like(ids_BT), batch.segments_BT)
        if fills:
            found += logits[0, hidden_T].argmax(-1).tolist() + [int(each[0].argmax()) for each in pair]
        else:
            found += (logits[0] > 0).tolist() if kind == "discriminator" else [int(logits[0].argmax())]
    return found


_ROUNDS = 5


@torch.inference_mode()
def rows_per_second(
    models: Mapping[str, nn.Module], rows: Sequence[Row], batch_size: int, pad_id: int
) -> dict[str, float]:
    """Rows a second by model: the median of several rounds, in which the models read the same rows in turn.

    The models have the interface of `model.task_models` and are in evaluation mode.
    """
    batches = [
        batch_of(rows[start : start + batch_size], pad_id, torch.device("cpu"))
        for start in range(0, len(rows), batch_size)
    ]
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for round_ in range(_ROUNDS + 1):
        for name, model in models.items():
            taken = _seconds(model, batches)
            if round_ > 0:  # the first one prepares memory
                seconds[name].append(taken)
    return {name: len(rows) / statistics.median(taken) for name, taken in seconds.items()}


def _seconds(model: nn.Module, batches: Sequence[RowBatch]) -> float:
    begun = time.perf_counter()
    for batch in batches:
        model(batch.ids_BT, batch.segments_BT, batch.mask_BT)
    return time.perf_counter() - begun


BATCH_SIZES = (1, 32)
"""Batch sizes for which the speed is measured."""


@dataclass(frozen=True)
class Form:
    """A form of the model: the size of its weights or of its file, and rows a second by batch size."""

    bytes: int
    rows_per_second: dict[int, float]


@dataclass(frozen=True)
class Comparison:
    """The form with weights of 8 bits beside the others.

    Attributes:
        seven_bits: whether its weights use 7 bits (`folders.onnx_graph`).
        rows: the number of rows in the sample.
        agreement: the agreement with bertcli (`agreement`).
        forms: the forms by name.
    """

    seven_bits: bool
    rows: int
    agreement: dict[str, float]
    forms: dict[str, Form]


def compare(
    source: Source, fp32: OnnxModel, int8: OnnxModel, sample: Sequence[Example], seven_bits: bool
) -> Comparison:
    """Measure the speed of all forms on rows of the sample, and the agreement of 8 bits on all of it."""
    models = {"bertcli, fp32": source.model, "onnxruntime, fp32": fp32, "onnxruntime, int8": int8}
    sizes = [weight_bytes(source.model), fp32.file.stat().st_size, int8.file.stat().st_size]
    rows = list(islice(cycle(source.rows(sample)), max(BATCH_SIZES)))  # a small sample is read again
    speeds = {
        size: rows_per_second(models, rows, batch_size=size, pad_id=source.tokenizer.pad_id)
        for size in BATCH_SIZES
    }
    forms = {
        name: Form(bytes, {size: speeds[size][name] for size in BATCH_SIZES})
        for name, bytes in zip(models, sizes, strict=True)
    }
    return Comparison(seven_bits, len(sample), agreement(source, int8, sample), forms=forms)
