"""Times of steps and matrix products on a device, a model that pads its rows, and batches of random ids."""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bertcli.batches.batch import Batch
from bertcli.batches.share import MicroBatch, Share
from bertcli.config.run import DecidedLoop, TrainingRecipe, with_values
from bertcli.objectives.base import Task
from bertcli.objectives.registry import MLM_NSP, Objective
from bertcli.system.hardware import NARROW, Precision
from bertcli.training.loop import train
from bertcli.training.optimizer import build_optimizer
from bertcli.training.resolve import loop_settings
from bertcli.training.scores import StepReport
from bertcli.training.wrapping import compile_layers


def now(device: torch.device) -> float:
    """Seconds since an arbitrary start, read after the device has finished all its work."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def device_name(device: torch.device) -> str:
    """The name of the GPU for people, or cpu."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


SIZES = {"cpu": (1024, 2048), "cuda": (4096, 8192)}
"""Sizes of square matrices: large enough for the best rate of a device, small enough to be fast."""


def matmul_rate(device: torch.device, precision: Precision, seconds: float = 0.5) -> float:
    """Operations per second of the fastest product of `SIZES`; each is repeated for `seconds`."""
    dtype = NARROW.get(precision, torch.float32)
    return max(_rate(size, device, dtype, seconds=seconds) for size in SIZES[device.type])


def _rate(size: int, device: torch.device, dtype: torch.dtype, seconds: float) -> float:
    a, b, product = (torch.randn(size, size, device=device).to(dtype) for _ in range(3))
    torch.mm(a, b, out=product)
    fastest, begun = float("inf"), now(device)
    while (started := now(device)) - begun < seconds:
        torch.mm(a, b, out=product)
        fastest = min(fastest, now(device) - started)
    return 2 * size**3 / fastest


class Padded(nn.Module):
    """A model that pads every row to `length`, to measure its time; its outputs are meaningless."""

    def __init__(self, model: nn.Module, length: int):
        super().__init__()
        self.model, self.length = model, length

    def forward(self, ids_BT: Tensor, segments_BT: Tensor, mask_BT: Tensor | None) -> Tensor:
        """The outputs for padded rows. `mask_BT` is not passed on, or the model would skip the padding."""
        length = ids_BT.shape[1]
        missing = (0, self.length - length)
        logits = self.model(F.pad(ids_BT, missing), F.pad(segments_BT, missing), None)
        return logits[:, :length] if logits.ndim == 3 else logits


MASK_RATE = 0.15
_FIRST_ID = 5
"""The first id that is not special."""
_STEPS = 4
"""Number of steps that are drawn once and repeated, so that the loop is measured, not the drawing."""


def synthetic_steps(
    vocab_size: int,
    batch_size: int,
    length: int,
    share: Share,
    objective: Objective = MLM_NSP,
    mask_rate: float = MASK_RATE,
) -> Iterator[list[MicroBatch]]:
    """Steps without end of `batch_size` rows of `length` tokens, divided by `share`."""
    generator = torch.Generator().manual_seed(0)
    masked = max(1, round(mask_rate * length))

    def batch(rows: int) -> Batch:
        ids_BT = torch.randint(_FIRST_ID, vocab_size, (rows, length), generator=generator)
        columns_BM = torch.rand(rows, length, generator=generator).topk(masked, dim=1).indices.sort().values
        return Batch(
            ids_BT=ids_BT,
            segments_BT=(torch.arange(length) >= length // 2).long().expand(rows, length),
            lengths_B=torch.full((rows,), length),
            rows_M=torch.arange(rows).repeat_interleave(masked),
            columns_M=columns_BM.flatten(),
            targets_M=torch.randint(_FIRST_ID, vocab_size, (rows * masked,), generator=generator),
            labels_B=torch.arange(rows) % 2 if objective.pairs.is_pair else None,
            draws_M=torch.rand(rows * masked, generator=generator, dtype=torch.float64)
            if objective.generates
            else None,
        )

    sizes = [len(rows) for rows in torch.arange(batch_size).split(share.micro_batch_size)]
    return cycle([share.of(sizes, batch) for _ in range(_STEPS)])


WARMUP_STEPS = 3
"""Number of first steps that are not timed: they allocate memory, choose kernels and make AdamW's moments."""


@dataclass(frozen=True)
class StepTimes:
    """The times of consecutive steps, each with the drawing of its batch.

    Attributes:
        seconds, tokens: time and number of real tokens of each step, in order.
    """

    seconds: list[float]
    tokens: list[int]

    @property
    def median(self) -> float:
        """The median time of a step in seconds."""
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The quartiles of the time in seconds: half of the steps are between them."""
        if len(self.seconds) < 2:
            return self.median, self.median
        first, _, third = statistics.quantiles(self.seconds, n=4, method="inclusive")
        return first, third

    @property
    def tokens_per_step(self) -> float:
        """Mean number of real tokens."""
        return sum(self.tokens) / len(self.tokens)

    @property
    def tokens_per_second(self) -> float:
        """Mean tokens of a step by the median time of a step."""
        return self.tokens_per_step / self.median


def training_to_time(**keys: Any) -> TrainingRecipe:
    """The section `training` of steps whose time is measured; the keys that the time does not depend on are
    given."""
    given = {"optimizer": "adamw", "learning_rate": 1e-4, "warmup_steps": 0, "steps": 1, "ramp_steps": 1}
    return TrainingRecipe.model_validate(given | keys)


def take_steps(
    model: nn.Module, task: Task, steps: Iterator[Sequence[MicroBatch]], training: DecidedLoop
) -> Iterator[StepReport]:
    """The reports of steps with a new optimizer and a constant learning rate; `model` is on its device.

    Args:
        training: the decided training section (`training.resolve.decide_loop`).
    """
    optimizer = build_optimizer(
        model,
        training.betas,
        training.weight_decay,
        kind=training.optimizer,
        precision=training.precision,
    )
    constant = with_values(training, {"schedule": "constant"})
    settings = loop_settings(constant, seed=0, steps=1, warmup_steps=0)
    if training.compile:
        compile_layers(model)
    return train(model, task, steps, optimizer=optimizer, settings=settings, first_step=0)


def time_in_turn(
    sides: Sequence[Iterator[StepReport]], steps: int, clock: Callable[[], float]
) -> list[StepTimes]:
    """The times of `steps` steps of each side, in turn, after `WARMUP_STEPS`; `clock` returns seconds."""
    times = [StepTimes([], []) for _ in sides]
    for number in range(WARMUP_STEPS + steps):
        for reports, of_side in zip(sides, times, strict=True):
            started = clock()
            report = next(reports)
            if number >= WARMUP_STEPS:
                of_side.seconds.append(clock() - started)
                of_side.tokens.append(report.tokens)
    return times


def time_steps(
    reports: Iterator[StepReport], device: torch.device, steps: int, seconds: float = float("inf")
) -> StepTimes:
    """Take `WARMUP_STEPS`, then time up to `steps` more: at least one. No step begins after `seconds` (with
    warm-up). `reports` must be long enough."""
    begun = now(device)
    for _ in range(WARMUP_STEPS):
        next(reports)
        if now(device) - begun > seconds / 2:
            break
    times, tokens = [], []
    while len(times) < steps and (not times or now(device) - begun < seconds):
        started = now(device)
        tokens.append(next(reports).tokens)
        times.append(now(device) - started)
    return StepTimes(times, tokens)
