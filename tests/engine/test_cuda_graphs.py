"""Passes that are replayed: what is around a graph is the same on a CPU, where a stand-in computes anew."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bertcli.config.schema import TrainingConfig
from bertcli.data.share import MicroBatch, Share
from bertcli.data.stream import BatchStream
from bertcli.engine import cuda_graphs
from bertcli.engine.cuda_graphs import GraphedPass, Run, is_launch_bound
from bertcli.engine.loop import LoopSettings, train
from bertcli.engine.loss_scale import LossScale
from bertcli.engine.optimizer import build_optimizer
from bertcli.engine.step_report import StepReport
from bertcli.errors import UserError
from bertcli.hardware import Precision
from bertcli.model import bert, encoder
from bertcli.model.architecture import Architecture
from bertcli.model.build import architecture
from bertcli.model.pretraining import BertForPreTraining
from bertcli.runs.resolve import adopt_loop_decisions, resolve_loop
from bertcli.tasks.pretraining import PretrainingTask, round_masked
from tests.decided import model_config

EAGER = LoopSettings(1, torch.device("cpu"), "fp32", max_grad_norm=1.0, rate=lambda step: 1e-3)
GRAPHED = replace(EAGER, cuda_graphs=True)


class Watch(TorchDispatchMode):
    """Notes operators; all their tensors are on the meta device, and hold nothing that could be read."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves((args, kwargs, out)) if isinstance(leaf, torch.Tensor)]
        assert {tensor.device.type for tensor in tensors} <= {"meta"}, func
        self.names.add(func.__name__)
        return out


def test_a_pass_reads_nothing_back_from_its_device(
    stream: BatchStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that a GPU would compute, of sizes alone: what asks for a number raises."""
    monkeypatch.setattr(encoder, "reads_packed", lambda hidden, head_size: True)
    monkeypatch.setattr(bert, "_narrow", lambda hidden: hidden)  # autocast knows no such device
    sizes = Architecture(400, 64, 2, 2, 128, 32, dropout=0.1, attention_dropout=0.1)
    meta = torch.device("meta")
    with meta:
        model = BertForPreTraining(sizes).to(torch.bfloat16)
    micro_pass = GraphedPass(model, PretrainingTask(), meta, "fp32")
    batch = round_masked(cut(stream, 1)[0][0].batch)
    resident = micro_pass._prepare(batch, ["mlm", "nsp"])
    with Watch() as watch:
        assert set(resident.run()) == {"mlm", "nsp"}
    assert {"_flash_attention_backward.default", "embedding_dense_backward.default"} <= watch.names
    # Summed in a fixed order, these look at their indices first.
    assert not {name for name in watch.names if name.startswith(("index_add", "index_put", "index_copy"))}


class StandIn:
    """Runs again at each replay and, as a graph does, always gives the same tensors back."""

    def __init__(self) -> None:
        self.recorded = self.replayed = 0

    def __call__(self, run: Run) -> Run:
        self.recorded += 1
        kept = {}

        def replay():
            self.replayed += 1
            for name, term in run().items():
                if name in kept:
                    kept[name].loss.copy_(term.loss)
                    kept[name].correct.copy_(term.correct)
                else:
                    kept[name] = term
            return kept

        return replay


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    stand_in = StandIn()
    monkeypatch.setattr(cuda_graphs, "record", stand_in)
    return stand_in


def cut(stream: BatchStream, steps: int, micro_batch_size: int = 16) -> list[list[MicroBatch]]:
    return [stream.micro_batches(step, Share(micro_batch_size)) for step in range(steps)]


def run(
    steps: list[list[MicroBatch]], settings: LoopSettings, dropout: float = 0.0, nsp: bool = True
) -> tuple[list[StepReport], BertForPreTraining]:
    torch.manual_seed(0)
    sizes = Architecture(400, 32, 2, 4, 64, 32, dropout=dropout, attention_dropout=dropout)
    model = BertForPreTraining(sizes, nsp)
    optimizer = build_optimizer(model, (0.9, 0.999), 0.01)
    scale = LossScale() if settings.precision == "fp16" else None
    return list(train(model, PretrainingTask(), steps, optimizer, settings, 0, scale)), model


def same(reports: list[StepReport], expected: list[StepReport]) -> None:
    for ours, theirs in zip(reports, expected, strict=True):
        assert ours.losses == pytest.approx(theirs.losses, rel=1e-5)
        assert ours.grad_norm == pytest.approx(theirs.grad_norm, rel=1e-5)
        assert (ours.accuracies, ours.tokens) == (theirs.accuracies, theirs.tokens)


def test_replayed_it_learns_the_same(stream: BatchStream, stand_in: StandIn) -> None:
    steps = cut(stream, 6)
    replayed, model = run(steps, GRAPHED)
    eager, its_model = run(steps, EAGER)
    same(replayed, eager)
    for ours, theirs in zip(model.parameters(), its_model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)
    passes = sum(map(len, steps))
    assert stand_in.replayed == passes + stand_in.recorded  # each tried once more
    assert stand_in.recorded < passes / 2  # few sizes


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_in_16_bits_as_well(stream: BatchStream, stand_in: StandIn, precision: Precision) -> None:
    replayed, _ = run(cut(stream, 3), replace(GRAPHED, precision=precision))
    eager, _ = run(cut(stream, 3), replace(EAGER, precision=precision))
    assert stand_in.replayed
    assert [report.loss for report in replayed] == pytest.approx([r.loss for r in eager], rel=1e-2)
    assert [report.loss_scale for report in replayed] == [report.loss_scale for report in eager]


def test_recording_draws_no_dropout(stream: BatchStream, stand_in: StandIn) -> None:
    """A resume records its sizes at other steps than the undisturbed run did."""
    whole, _ = run(cut(stream, 4), GRAPHED, dropout=0.1)
    recorded = stand_in.recorded
    again, _ = run(cut(stream, 4), GRAPHED, dropout=0.1)
    assert whole == again
    assert stand_in.recorded == 2 * recorded
    cuda_graphs_off, _ = run(cut(stream, 1), replace(GRAPHED, cuda_graphs=False), dropout=0.1)
    assert cuda_graphs_off[0].loss == pytest.approx(whole[0].loss, rel=0.05)


def test_more_sizes_than_are_kept_are_computed_unrecorded(
    stream: BatchStream, stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cuda_graphs, "_MOST_SIZES", 1)
    steps = [*cut(stream, 2), *cut(stream, 2, micro_batch_size=8)]
    replayed, _ = run(steps, GRAPHED)
    same(replayed, run(steps, EAGER)[0])
    assert stand_in.recorded == 1


def no_graph(run: Run) -> Run:
    raise RuntimeError("operation not permitted when stream is capturing\nand many lines more")


def graph_of_another_pass(run: Run) -> Run:
    def replay():
        run()
        return run()  # adds its gradient twice

    return replay


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (no_graph, "operation not permitted when stream is capturing"),
        (graph_of_another_pass, "their gradient is 100.0% off"),
    ],
)
def test_without_a_right_graph_the_run_goes_on(
    stream: BatchStream, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], record, reason
) -> None:
    monkeypatch.setattr(cuda_graphs, "record", record)
    replayed, _ = run(cut(stream, 4), GRAPHED)
    same(replayed, run(cut(stream, 4), EAGER)[0])
    said = "".join(capsys.readouterr())
    assert said == f"warning: going on without CUDA graphs: {reason}\n"


@pytest.mark.parametrize(
    ("preset", "rows", "bound"), [("tiny", 256, True), ("mini", 64, True), ("base", 64, False)]
)
def test_small_models_wait_for_python(preset, rows: int, bound: bool) -> None:
    sizes = architecture(model_config(preset=preset), 30522)
    assert is_launch_bound(sizes, rows * 128, 128, 0.15) is bound


def test_there_are_none_on_a_cpu() -> None:
    sizes = architecture(model_config(preset="tiny"), 2048)
    training = TrainingConfig(batch_size=256, device="cpu")
    assert resolve_loop(training, sizes, 64, 1e6).cuda_graphs is False
    with pytest.raises(UserError, match=r"cuda_graphs: true needs one GPU .* here: cpu, .* auto or false"):
        resolve_loop(training.model_copy(update={"cuda_graphs": True}), sizes, 64, 1e6)


def test_a_resume_does_as_the_run_did() -> None:
    saved = TrainingConfig(cuda_graphs=True)
    assert adopt_loop_decisions(TrainingConfig(), saved).cuda_graphs is True
