"""Memory: what training needs, what is free, and what this process holds."""

import ctypes
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch
from torch import nn

from bertcli.families.family import Sharing
from bertcli.model.architecture import Architecture
from bertcli.model.init import sizes_alone
from bertcli.model.pretraining import PretrainingModel, ReplacedTokenModel

_TASK_HEADS = ("classifier", "qa_outputs")


def count_parameters(model: nn.Module) -> dict[str, int]:
    """Parameters of each part: embeddings, encoder, and the heads by name; a labeled task's is called `head`.

    The MLM head shares its decoder with the word embeddings, which are counted once.
    """
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        part = name.removeprefix("body.").split(".")[0]
        counts["head" if part in _TASK_HEADS else part] += parameter.numel()
    return dict(counts)


def pretraining_parameters(
    architecture: Architecture, pair_head: bool, sharing: Sharing = "tied"
) -> dict[str, int]:
    """The counts of `count_parameters`, for a model built without values, and its generator if it has one."""
    with sizes_alone():
        if architecture.generator is not None:
            return count_parameters(ReplacedTokenModel(architecture, sharing))
        return count_parameters(PretrainingModel(architecture, pair_head))


FP32, HALF, BOOL = 4, 2, 1
CHECKPOINT_BYTES = 3 * FP32
"""Bytes in a checkpoint for each parameter: its weight and AdamW's two moments."""
HEAP_WASTE = 1.65
"""Bytes of a CPU's heap per byte of activations, once some steps have fragmented it: measured (`LOG.md`)."""


@dataclass(frozen=True)
class StepSizes:
    """The rows that go through the model at once, and how.

    Attributes:
        rows, length: number of rows, and tokens of each.
        predicted: share of the tokens whose word is predicted; 0 for a labeled task.
        half: true for 16-bit precision.
        checkpointing: true if activations of a layer are recomputed, not kept.
        on_cpu: true on a CPU, false on a GPU.
    """

    rows: int
    length: int
    predicted: float
    half: bool
    checkpointing: bool
    on_cpu: bool

    @property
    def tokens(self) -> int:
        """Tokens of a micro-batch, padding included."""
        return self.rows * self.length

    @property
    def selected(self) -> float:
        """Share of the tokens that go through all of the last layer; for a labeled task it may be 1."""
        return min(1.0, self.predicted + 1 / self.length) if self.predicted else 1.0


@dataclass(frozen=True)
class StepMemory:
    """The memory of a step: bytes of each part.

    Attributes:
        weights: the weights, and their 16-bit copy in 16-bit precision.
        moments: AdamW's two moments.
        activations: what is kept for the backward pass, and the gradients of one layer's activations.
        logits: logits of the predicted tokens, their gradient, and on a GPU their softmax.
    """

    weights: float
    gradients: float
    moments: float
    activations: float
    logits: float

    @property
    def total(self) -> float:
        """Bytes of all parts."""
        return sum(getattr(self, field.name) for field in fields(self))


def step_memory(architecture: Architecture, parameters: int, trained: int, sizes: StepSizes) -> StepMemory:
    """Bytes at the peak of a step: after the second micro-batch's forward pass, with the first one's
    gradients.

    A single micro-batch's gradients come when its activations go, but a CPU's heap does not reuse that
    memory.

    Args:
        parameters: number of the model's parameters, with those of a generator. AdamW trains `trained` of
            them: weight, gradient and two moments, all in fp32.
    """
    if architecture.generator is not None:
        alone, whole_rows = replace(architecture, generator=None), replace(sizes, predicted=0.0)
        one = step_memory(alone, parameters, trained, sizes=whole_rows)
        other = step_memory(architecture.generator, 0, 0, sizes=sizes)
        return replace(one, activations=one.activations + other.activations, logits=other.logits)
    hidden, narrow = architecture.hidden, HALF if sizes.half else FP32  # `narrow`: also between layers
    per_token = sizes.tokens * (HEAP_WASTE if sizes.on_cpu else 1.0)
    one_layer = per_token * _layer_bytes(architecture, sizes, selected=1.0)
    if sizes.checkpointing:  # the inputs of all layers
        layers = architecture.layers * per_token * narrow * hidden
    else:
        last_layer = per_token * _layer_bytes(architecture, sizes, sizes.selected)
        layers = (architecture.layers - 1) * one_layer + last_layer
    embeddings = per_token * 3 * FP32 * hidden
    inner = 3 if architecture.pre_norm else 1  # gates: gradients of the product and of both halves
    backward = per_token * narrow * (2 * hidden + inner * architecture.feed_forward)
    if sizes.on_cpu and not sizes.checkpointing:  # the gradients of keys and values may need more
        of_attention = 7 if architecture.relative is None else 12  # relative positions need 5 more
        backward = max(sizes.selected * backward, per_token * of_attention * narrow * hidden)
    bytes_per_logit = 2 * narrow if sizes.on_cpu else 3 * FP32
    logits = per_token * bytes_per_logit * sizes.predicted * architecture.vocab_size
    recomputed = one_layer if sizes.checkpointing else 0.0
    activations = layers + embeddings + max(0.0, backward + recomputed - logits)  # logits are freed by then
    # At the end only the gradient of the word embeddings is left: as decoder, as embeddings, and the sum.
    width = architecture.embedding or hidden
    words = (3 if sizes.predicted else 1) * FP32 * architecture.vocab_size * width
    copies = HALF * sizes.half * parameters
    activations = max(activations, words - logits - copies)
    return StepMemory(
        weights=FP32 * parameters + copies,
        gradients=FP32 * trained,
        moments=2 * FP32 * trained,
        activations=activations,
        logits=logits,
    )


def rows_that_fit(
    architecture: Architecture, parameters: int, sizes: StepSizes, available: float, at_most: int
) -> int:
    """The most rows, 1 to `at_most`, with which a step that trains all parameters fits into `available`
    bytes.

    The result is 1 if no number fits. `sizes.rows` is ignored.
    """
    low, high = 1, at_most
    while low < high:
        middle = (low + high + 1) // 2
        need = step_memory(architecture, parameters, parameters, sizes=replace(sizes, rows=middle))
        low, high = (middle, high) if need.total <= available else (low, middle - 1)
    return low


def _layer_bytes(architecture: Architecture, sizes: StepSizes, selected: float) -> float:
    """Bytes a token that a layer keeps if the share `selected` of the tokens goes through all of it.

    The values are measured on a CPU; on a GPU they follow from what torch's kernels save.
    """
    hidden, narrow = architecture.hidden, HALF if sizes.half else FP32
    inner = 4 if architecture.pre_norm else 2  # before and after GELU; with a gate: the gate and the product
    kept = inner * narrow * selected * architecture.feed_forward
    if architecture.dropout:
        kept += 2 * BOOL * selected * hidden  # masks
    if architecture.relative is not None:  # attention is computed for all queries
        kept += 6 * narrow * hidden / sizes.rows  # positions: dropout's output, and two of all distances
        matrix = narrow if sizes.on_cpu else FP32 + BOOL + narrow
        kept += architecture.heads * sizes.length * matrix + (1 - selected) * narrow * hidden
    if sizes.on_cpu:
        kept += 2 * narrow * hidden  # keys, values
        kept += 3 * narrow * selected * hidden  # queries; the context by heads and by tokens
        kept += 4 * narrow * selected * hidden  # inputs and outputs of the LayerNorms
        if architecture.relative is not None:
            return kept
        matrices = 2 if architecture.attention_dropout else 1  # the size: selected queries x all keys
        return kept + matrices * narrow * selected * architecture.heads * sizes.length
    kept += 4 * narrow * hidden  # query, key, value, context
    kept += 2 * FP32 * selected * hidden  # inputs of the LayerNorms, which compute in fp32
    return kept + 2 * narrow * selected * hidden  # their outputs


CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")
MEMINFO = Path("/proc/meminfo")


def free_memory(device: torch.device) -> int:
    """Bytes that can be taken on `device` without an out-of-memory kill or error."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return min([_bytes("MemAvailable"), *(left for _, left in _cgroups())])


def all_memory(device: torch.device) -> int:
    """Bytes that a process could take on `device` if nothing else ran there; no load changes it."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[1]
    return min([_bytes("MemTotal"), *(limit for limit, _ in _cgroups())])


def _bytes(what: str) -> int:
    """Bytes that the machine reports for `what` (MemAvailable: without swapping); if none, all of its
    memory."""
    try:
        for line in MEMINFO.read_text().splitlines():
            if line.startswith(f"{what}:"):
                return int(line.split()[1]) << 10
    except OSError:  # not Linux
        pass
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cgroups() -> Iterator[tuple[int, int]]:
    """(limit, bytes left) of each memory cgroup that has a limit: this process's group and those above it."""
    try:
        entries = [line.split(":", 2) for line in OWN_CGROUP.read_text().splitlines()]
    except OSError:
        return
    for _, controllers, own in entries:
        if controllers == "":
            root, names = CGROUPS, ("memory.max", "memory.current", "inactive_file")
        elif controllers == "memory":
            root = CGROUPS / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        # In a container the path may be the host's; the container's own group is then the root.
        path = root / own.lstrip("/")
        for folder in [path, *path.parents]:
            if folder == root.parent:
                break
            if (limited := _limit_and_left(folder, *names)) is not None:
                yield limited


def _limit_and_left(folder: Path, limit: str, usage: str, cache: str) -> tuple[int, int] | None:
    """The limit of one group and the bytes left; None if it has no limit. The page cache counts as free."""
    try:
        most = (folder / limit).read_text().strip()
        if most == "max":
            return None
        used = int((folder / usage).read_text())
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return int(most), max(0, int(most) - used + int(stat.get(cache, 0)))
    except (OSError, ValueError):
        return None


def peak_memory(device: torch.device) -> int:
    """The peak in bytes: on a GPU the most that torch has reserved; else the process's resident memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_reserved(device)
    import resource  # Windows has none

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def resident_memory(device: torch.device) -> int:
    """Bytes held now: on a GPU those reserved by torch; else the process's resident memory."""
    if device.type == "cuda":
        return torch.cuda.memory_reserved(device)
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux
        return peak_memory(device)


_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""Parameters of mallopt(3)."""


def keep_freed_memory() -> None:
    """Let the C library keep large blocks that are freed, if it is glibc.

    Its default returns them to the system, which then fills each page with zeros at every step.
    """
    if not (hasattr(os, "confstr_names") and "CS_GNU_LIBC_VERSION" in os.confstr_names):
        return
    library = ctypes.CDLL(None)
    library.mallopt(_MMAP_THRESHOLD, 1 << 30)
    library.mallopt(_TRIM_THRESHOLD, 2**31 - 1)
    library.mallopt(_TOP_PAD, 64 << 20)
