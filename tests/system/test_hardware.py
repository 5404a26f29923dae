from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from bertcli.model.architecture import Architecture
from bertcli.system.errors import UserError
from bertcli.system.hardware import (
    crowded,
    fast_rows,
    fitting_rows,
    resolve_device,
    resolve_precision,
    resolve_workers,
)
from bertcli.system.memory import StepSizes

CPU = torch.device("cpu")
LARGE = Architecture(30522, 1024, 24, 16, 4096, 512)


@pytest.mark.parametrize(("name", "message"), [("gpu", "unknown"), ("meta", "not supported")])
def test_a_device_that_is_none_is_an_error(name: str, message: str) -> None:
    with pytest.raises(UserError, match=f"device: '{name}' is {message}; give auto, cpu, cuda or cuda:N"):
        resolve_device(name)


def test_a_device_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UserError, match=r"device: 'cuda:99' is set, but this machine has"):
        resolve_device("cuda:99")


@pytest.mark.parametrize(
    ("capabilities", "precision"),
    [({}, "fp32"), ({"amx_bf16": True}, "bf16"), ({"avx512_bf16": True}, "bf16"), ({"avx2": True}, "fp32")],
)
def test_auto_precision_is_bf16_where_a_cpu_multiplies_it(
    monkeypatch: pytest.MonkeyPatch, capabilities: dict, precision: str
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert resolve_precision("auto", CPU) == precision
    assert resolve_precision("bf16", CPU) == "bf16"


@pytest.mark.parametrize(
    ("capability", "precision"), [((6, 1), "fp32"), ((7, 0), "fp16"), ((7, 5), "fp16"), ((8, 0), "bf16")]
)
def test_auto_precision_is_that_of_the_tensor_cores(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], precision: str
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert resolve_precision("auto", torch.device("cuda")) == precision


def test_a_cpu_gets_no_loader_processes_unless_asked() -> None:
    assert resolve_workers("auto", CPU) == 0
    assert resolve_workers(2, CPU) == 2


def rows(
    architecture: Architecture, batch_size: int, length: int, device: torch.device, **others: Any
) -> int:
    """An automatic micro-batch; in fp32, of pretraining, unless `others` say otherwise."""
    plain = StepSizes(1, length, predicted=0.15, half=False, checkpointing=False, on_cpu=device == CPU)
    mean_length, num_ranks = others.pop("mean_length", None), others.pop("num_local_ranks", 1)
    sizes = replace(plain, **others)
    at_most = min(batch_size, fast_rows(sizes, mean_length))
    return fitting_rows(architecture, sizes, at_most, device, num_ranks)


def test_an_automatic_micro_batch_is_no_larger_than_the_batch_or_than_gains_speed() -> None:
    small = Architecture(1000, 64, 2, 1, 256, 128)
    assert rows(small, 8, 128, CPU) == 8
    assert rows(small, 10_000, 128, CPU) == 128


@pytest.mark.parametrize(("mean_length", "at_once"), [(128, 16), (27, 16), (13.7, 32), (7, 64), (3, 100)])
def test_labeled_rows_are_few_at_once_on_a_cpu(mean_length: float, at_once: int) -> None:
    """They are sorted by length, and each micro-batch is padded to its own longest row."""
    small = Architecture(1000, 64, 2, 1, 256, 128)
    assert rows(small, 100, 128, CPU, mean_length=mean_length) == at_once
    assert rows(small, 8, 128, CPU, mean_length=mean_length) == 8


@pytest.mark.parametrize(("memory", "fit"), [(0, 1), (16, 1), (24, 3), (48, 10)])
def test_an_automatic_micro_batch_fits_into_the_memory(
    monkeypatch: pytest.MonkeyPatch, memory: int, fit: int
) -> None:
    """BERT-large on rows of 512, with the copy for checkpoints; `memory` in GiB."""
    monkeypatch.setattr("bertcli.system.hardware.all_memory", lambda device: memory << 30)
    assert rows(LARGE, 256, 512, CPU) == fit


def test_what_does_not_fit_into_the_free_memory_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = StepSizes(rows=8, length=512, predicted=0.15, half=False, checkpointing=False, on_cpu=True)
    monkeypatch.setattr("bertcli.system.hardware.free_memory", lambda device: 4 << 30)
    assert (crowded(LARGE, sizes, CPU) or "").startswith("warning: a step of 8 rows at once needs about ")
    monkeypatch.setattr("bertcli.system.hardware.free_memory", lambda device: 400 << 30)
    assert crowded(LARGE, sizes, CPU) is None


def test_ranks_share_the_memory_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertcli.system.hardware.all_memory", lambda device: 48 << 30)
    assert 1 <= rows(LARGE, 256, 512, CPU, num_local_ranks=2) < rows(LARGE, 256, 512, CPU) / 2


@pytest.mark.parametrize("less", [{"half": True}, {"predicted": 0.0}, {"checkpointing": True}], ids=str)
def test_an_automatic_micro_batch_is_larger_where_rows_take_less(
    monkeypatch: pytest.MonkeyPatch, less: dict
) -> None:
    monkeypatch.setattr("bertcli.system.hardware.all_memory", lambda device: 1 << 30)
    wide = Architecture(100_000, 64, 12, 1, 256, 512)
    assert rows(wide, 256, 512, CPU, **less) > rows(wide, 256, 512, CPU)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_auto_takes_the_gpu() -> None:
    device = resolve_device("auto")
    assert device.type == "cuda"
    assert rows(LARGE, 4096, 512, device) > 8
