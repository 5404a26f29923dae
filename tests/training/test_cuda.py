"""On a GPU: the losses of the CPU, compiled or not; a resume gives the same bits."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bertcli.batches.share import Share
from bertcli.batches.stream import BatchStream
from bertcli.config.section import OptimizerName
from bertcli.model.architecture import Architecture
from bertcli.model.pretraining import PretrainingModel
from bertcli.objectives.masked_language import MaskedLanguage
from bertcli.objectives.registry import NEXT_SENTENCE
from bertcli.system.hardware import Precision
from bertcli.training.loop import LoopSettings, train
from bertcli.training.optimizer import build_optimizer
from bertcli.training.scores import StepReport
from bertcli.training.wrapping import compile_layers
from tests.small_runs import losses, run_process, small_config, start_and_signal, write_config

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("default"),  # torch warns of itself while it compiles
]
GPU = LoopSettings(1, torch.device("cuda"), "fp32", max_grad_norm=1.0, rate=lambda step: 1e-3)


def run(
    stream: BatchStream,
    settings: LoopSettings,
    compiled: bool = False,
    dropout: float = 0.0,
    kind: OptimizerName = "adamw",
) -> list[StepReport]:
    torch.manual_seed(0)
    sizes = Architecture(400, 64, 2, 2, 128, 32, dropout=dropout, attention_dropout=dropout)
    model = PretrainingModel(sizes).to(settings.device)
    if compiled:
        compile_layers(model)
    optimizer = build_optimizer(model, (0.9, 0.999), 0.01, kind=kind)
    steps = [stream.micro_batches(step, Share(16)) for step in range(5)]
    return list(train(model, MaskedLanguage(NEXT_SENTENCE, compiled), steps, optimizer, settings, 0))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("bf16", 2e-2), ("fp16", 5e-3)])
def test_the_losses_are_the_cpus(
    stream: BatchStream, precision: Precision, tolerance: float, compiled: bool
) -> None:
    exact = run(stream, replace(GPU, device=torch.device("cpu")))
    reports = run(stream, replace(GPU, precision=precision), compiled)
    assert [report.loss for report in reports] == pytest.approx(
        [report.loss for report in exact], rel=tolerance
    )


def test_muon_learns_like_the_cpus(stream: BatchStream) -> None:
    exact = run(stream, replace(GPU, device=torch.device("cpu")), kind="muon")
    reports = run(stream, GPU, kind="muon")
    assert [report.loss for report in reports] == pytest.approx([report.loss for report in exact], rel=2e-2)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_twice_it_gives_the_same_bits(stream: BatchStream, precision: Precision) -> None:
    settings = replace(GPU, precision=precision)
    first, second = (run(stream, settings, dropout=0.1) for _ in range(2))
    assert [(each.loss, each.grad_norm) for each in first] == [(each.loss, each.grad_norm) for each in second]


def test_a_resume_gives_the_bits_of_the_undisturbed_run(corpus: Path, tmp_path: Path) -> None:
    sections = {
        "training": {"device": "cuda", "precision": "bf16", "steps": 12},
        "model": {
            "layers": 2,
            "hidden": 64,
            "heads": 2,
            "feed_forward": 128,
            "max_positions": 32,
            "dropout": 0.1,
        },
    }
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    for folder in (whole, halves):
        folder.mkdir()
        write_config(folder / "config.yaml", small_config(corpus, folder / "run", **sections))
    assert run_process("pretrain", whole / "config.yaml").returncode == 0
    config = halves / "config.yaml"
    assert start_and_signal("pretrain", config, halves / "run", 7, signal.SIGKILL) == -signal.SIGKILL
    assert run_process("pretrain", config, "--resume").returncode == 0
    ends = [(losses(folder / "run/metrics.jsonl"), weights(folder / "run")) for folder in (whole, halves)]
    assert ends[0] == ends[1]


def weights(run: Path) -> bytes:
    return (run / "model" / "model.safetensors").read_bytes()
