"""A model -> a folder with its ONNX file, checked at shapes that the exporter never saw, and with 8 bits."""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.batches.batch import batch_of
from bertcli.folders import convert, locate, model_files, sealed
from bertcli.folders.onnx_graph import ExportedModel, write_int8, write_onnx
from bertcli.folders.onnx_source import Source, weight_bytes
from bertcli.inference.onnx_model import HIDDEN, OnnxModel
from bertcli.inference.predict import Runner, default_batch_size
from bertcli.inference.vectors import Embedder
from bertcli.model.seam import plain_path
from bertcli.system.errors import UserError
from bertcli.system.terminal import say
from bertcli.tasks.examples import Example
from bertcli.tasks.supervised import build_task
from bertcli.tokenizer.frame import Row

TOLERANCE = 1e-4
"""Largest allowed difference of an output, in units of the largest output if that is above 1."""
_ADVICE = "nothing was written. Install the versions in constraints.txt, and try again"
_LONGEST = 512
"""Tokens of the longest row: more than every window, and every distance in published models' tables."""


@torch.inference_mode()
def check_equal(model: ExportedModel, served: OnnxModel) -> float:
    """The largest difference of an output, in units of the largest output if that is above 1.

    The rows are one as long as the model reads (at most 512 tokens), rows of one token, and rows of several
    lengths that all end in padding, one of them without a real token.

    Raises `UserError` if the difference is above `TOLERANCE`, or a shape differs.
    """
    largest = 0.0
    for ids, mask, segments in _inputs(model):
        given = (ids, mask, segments)[: len(model.inputs)]
        with plain_path():
            expected = model(*given)
        of_rows = f"for rows of the shape {tuple(ids.shape)}"
        for want, got, name in zip(expected, served.run(ids, segments, mask), model.outputs, strict=True):
            what = f"{name} of the exported model"
            if want.shape != got.shape:
                raise UserError(
                    f"{what} has the shape {tuple(got.shape)}, not {tuple(want.shape)} {of_rows}; {_ADVICE}"
                )
            difference = float((want - got).abs().max() / want.abs().max().clamp(min=1))
            if not difference <= TOLERANCE:  # NaN fails as well
                raise UserError(
                    f"{what} differs by {difference:g}, more than {TOLERANCE:g}, {of_rows}; {_ADVICE}"
                )
            largest = max(largest, difference)
    return largest


def _inputs(model: ExportedModel) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The ids, mask and segments of random rows."""
    longest = min(_LONGEST, model.architecture.usable_positions)
    padded = max(2, longest // 2)
    some = [max(1, padded - 3), max(1, padded // 3), 0]
    generator = torch.Generator().manual_seed(0)
    for lengths, width in (([longest], longest), ([1, 1, 1, 1, 1], 1), (some, padded)):
        sizes = (len(lengths), width)
        ids_BT = torch.randint(model.architecture.vocab_size, sizes, generator=generator)
        segments_BT = torch.randint(2, sizes, generator=generator)
        mask_BT = (torch.arange(width) < torch.tensor(lengths)[:, None]).long()
        rows = (ids_BT, mask_BT, segments_BT)
        if len(model.axes) == 3:  # an input of two questions, each with the same choices
            yield tuple(torch.stack([each, each.flip(0)]) for each in rows)  # pyright: ignore[reportReturnType]
        else:
            yield rows


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
    examples = list(task.at_words(examples, source.settings, source.tokenizer))
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
        batch_of(rows[start : start + batch_size], pad_id, CPU) for start in range(0, len(rows), batch_size)
    ]
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for round_ in range(_ROUNDS + 1):
        for name, model in models.items():
            begun = time.perf_counter()
            for batch in batches:
                model(*batch)
            if round_ > 0:  # the first one prepares memory
                seconds[name].append(time.perf_counter() - begun)
    return {name: len(rows) / statistics.median(taken) for name, taken in seconds.items()}


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
    pad_id = source.tokenizer.pad_id
    speeds = {size: rows_per_second(models, rows, batch_size=size, pad_id=pad_id) for size in BATCH_SIZES}
    forms = {
        name: Form(bytes, {size: speeds[size][name] for size in BATCH_SIZES})
        for name, bytes in zip(models, sizes, strict=True)
    }
    return Comparison(seven_bits, len(sample), agreement(source, int8, sample), forms=forms)


@dataclass(frozen=True)
class Exported:
    """The result of `export_onnx`: names of outputs, bytes of the file, difference by `check_equal`."""

    outputs: tuple[str, ...]
    bytes: int
    difference: float
    int8: Comparison | None


def export_onnx(source: Source, destination: Path, sample: Sequence[Example] | None) -> Exported:
    """Write the folder `destination`, a new or an empty one. It appears only once it is complete and checked.

    Args:
        sample: examples on which a second form, with weights of 8 bits, is compared; None: it is not written.

    Raises:
        UserError: `destination` is not empty, or cannot be written; outputs differ (`check_equal`).
    """
    return sealed.write_new(destination, lambda partial: _fill(source, partial, sample))


def _fill(source: Source, folder: Path, sample: Sequence[Example] | None) -> Exported:
    model = source.exported
    model_files.write_description(folder, model.architecture, source.tokenizer, declared=source.declared)
    convert.carry_files(source.folder, folder)
    (folder / locate.ONNX_FOLDER).mkdir()
    file, quantized = (
        folder / locate.ONNX_FOLDER / name for name in (locate.ONNX_FILE, locate.QUANTIZED_FILE)
    )
    say("exporting")
    write_onnx(model, file)
    say("comparing the outputs")
    fp32 = OnnxModel(file, model.architecture)
    difference, report = check_equal(model, fp32), None
    if sample is not None:
        say("rounding the weights to 8 bits, and measuring")
        seven_bits = write_int8(file, quantized)
        int8 = OnnxModel(quantized, model.architecture)
        report = compare(source, fp32, int8, sample=sample, seven_bits=seven_bits)
    return Exported(model.outputs, file.stat().st_size, difference, int8=report)
