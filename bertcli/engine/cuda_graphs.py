"""`training.cuda_graphs`: passes recorded once and replayed, for models so small that a GPU waits for Python.

A pass of BERT-mini starts some 550 kernels, which takes Python longer than the GPU takes to run them. A
CUDA graph starts them all at once. It reads and writes the same memory each time, so every size of batch has
memory and a graph of its own, and all of them add to the same gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from bertcli.data.batch import Batch, ResidentBatch
from bertcli.engine.compiling import LARGEST_RATE, launch_seconds
from bertcli.engine.micro_pass import divided_loss
from bertcli.hardware import NARROW, Precision, autocast
from bertcli.model.architecture import Architecture
from bertcli.model.attention import reads_packed
from bertcli.model.flops import training_flops
from bertcli.tasks.base import Task, Term
from bertcli.tasks.pretraining import round_masked
from bertcli.terminal import say

Run = Callable[[], Mapping[str, Term]]

_MOST_SIZES = 32
"""Graphs that are kept: full rows need two or three. Batches of more sizes are computed unrecorded."""
_TOLERANCE = 0.02
"""Of a recorded gradient against the same pass unrecorded, relative to its norm: a few roundings of bf16."""


def is_launch_bound(architecture: Architecture, at_once: int, length: int, predicted: float) -> bool:
    """Whether starting a pass's kernels takes twice as long as their matrix products, or longer: then it does
    not matter that padding is multiplied along.

    Args:
        at_once: tokens of a micro-batch.
        length, predicted: as in `model.flops.forward_flops`.
    """
    products = at_once * training_flops(architecture, length, predicted) / LARGEST_RATE
    return launch_seconds(architecture.layers) > 2 * products


def can_record(device: torch.device, precision: Precision, head_size: int) -> bool:
    """Whether attention reads packed rows: it is then exact, padding and all, and reads nothing back."""
    return reads_packed(torch.empty(0, dtype=NARROW.get(precision, torch.float32), device=device), head_size)


def record(run: Run) -> Run:
    """What starts all the kernels of `run` at once, and returns the same terms each time."""
    graph = torch.cuda.CUDAGraph()
    # Only this thread is watched: the loader's may pin memory meanwhile.
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        terms = run()

    def replay() -> Mapping[str, Term]:
        graph.replay()
        return terms

    return replay


@dataclass(frozen=True)
class _ResidentPass:
    """A pass and the memory that it reads."""

    batch: ResidentBatch
    divisors: dict[str, Tensor]
    factor: Tensor
    run: Run

    def __call__(self, batch: Batch, divisors: Mapping[str, float], factor: float) -> Mapping[str, Term]:
        self.batch.read(batch)
        for name, divisor in divisors.items():
            self.divisors[name].fill_(divisor)
        self.factor.fill_(factor)
        return self.run()


class GraphedPass:
    """As `micro_pass.EagerPass`, replayed. Padding is computed along: sizes alone shape a graph.

    Each graph is tried on its first batch. Where one cannot be recorded, or gives another gradient than the
    same pass unrecorded, that is said, and the run goes on without.
    """

    def __init__(self, model: nn.Module, task: Task, device: torch.device, precision: Precision) -> None:
        self._model, self._task, self._device = model, task, device
        self._precision: Precision = precision
        self._parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        sizes = [parameter.numel() for parameter in self._parameters]
        self._all_gradients = torch.zeros(sum(sizes), device=device)
        parts = zip(self._all_gradients.split(sizes), self._parameters, strict=True)
        self._gradients = [part.view_as(parameter) for part, parameter in parts]
        self._passes: dict[object, _ResidentPass] = {}
        self._given_up = False

    def __call__(self, batch: Batch, divisors: Mapping[str, float], factor: float) -> Mapping[str, Term]:
        if self._parameters[0].grad is None:  # a new step
            self._all_gradients.zero_()
            for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
                parameter.grad = gradient
        batch = round_masked(batch)
        sizes = tuple((name, tensor.shape) for name, tensor in batch.tensors().items())
        resident = self._passes.get(sizes)
        if resident is None:
            resident = self._prepare(batch, divisors)
            if not self._given_up and len(self._passes) < _MOST_SIZES:
                resident = self._passes[sizes] = self._recorded(resident, batch, divisors)
        return resident(batch, divisors, factor)

    def _prepare(self, batch: Batch, names: Iterable[str]) -> _ResidentPass:
        memory = ResidentBatch.like(batch, self._device)
        divisors = {name: torch.ones((), device=self._device) for name in names}
        factor = torch.ones((), device=self._device)

        def run() -> Mapping[str, Term]:
            with autocast(self._precision, self._device):
                terms = self._task.terms(self._model, memory)
            loss = divided_loss(terms, divisors) * factor
            of_this = torch.autograd.grad(loss, self._parameters)
            for gradient, more in zip(self._gradients, of_this, strict=True):
                gradient += more
            return {name: Term(term.loss.detach(), term.correct) for name, term in terms.items()}

        return _ResidentPass(memory, divisors, factor, run)

    def _recorded(
        self, resident: _ResidentPass, batch: Batch, divisors: Mapping[str, float]
    ) -> _ResidentPass:
        """`resident` with its run recorded; as it is where that gives no graph or a wrong one."""
        before = self._all_gradients.clone()
        expected = self._gradients_of(resident, batch, divisors)
        try:
            recorded = replace(resident, run=record(resident.run))
            difference = self._gradients_of(recorded, batch, divisors) - expected
            error = float(difference.norm() / expected.norm())
            reason = None if error <= _TOLERANCE else f"their gradient is {error:.1%} off"  # NaN is off too
        except RuntimeError as failed:
            recorded, reason = resident, str(failed).partition("\n")[0]
        self._all_gradients.copy_(before)
        if reason is None:
            return recorded
        self._given_up = True
        say(f"warning: going on without CUDA graphs: {reason}")
        return resident

    def _gradients_of(self, resident: _ResidentPass, batch: Batch, divisors: Mapping[str, float]) -> Tensor:
        """All of one pass; the random numbers that it draws are drawn once more by the next."""
        self._all_gradients.zero_()
        with torch.random.fork_rng([self._device] if self._device.type == "cuda" else []):
            resident(batch, divisors, 1.0)
        return self._all_gradients.clone()
