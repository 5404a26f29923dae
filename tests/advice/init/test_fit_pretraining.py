"""Presets, row lengths and steps that fit a time, on machines whose speed is given."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from bertcli.advice.bench.plan import Plan
from bertcli.advice.bench.probe import KNOWN_DEVICES, Probe
from bertcli.advice.init import fit_pretraining as fits
from bertcli.advice.init.amount import Prepared, measure_amount, prepared
from bertcli.advice.init.fit_pretraining import PretrainingFit, fit_pretraining
from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.files import corpus_files
from bertcli.families.family import FamilyName
from bertcli.model.architecture import training_flops
from tests.advice.init.files import speed

PLENTY = 1e12
"""Tokens of a text that is enough for every preset."""


def test_the_losses_that_init_names_are_those_of_the_speedrun() -> None:
    kept = Path(__file__).parents[3] / "scripts" / "bench" / "speedrun.jsonl"
    lines = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    runs = [line for line in lines if "mlm_loss" in line]  # the others are of tasks
    names: dict[tuple[int, FamilyName], str] = {
        (5, "modernbert"): "2 layers, auto",
        (5, "bert"): "2 layers",
        (20, "modernbert"): "2 layers",
        (20, "bert"): "auto, 2 layers",
    }
    for (minutes, family), name in names.items():
        key = (name, family, minutes)
        own = [run["mlm_loss"] for run in runs if (run["name"], run["family"], run["minutes"]) == key]
        assert round(statistics.mean(own), 2) == fits.LEARNED[minutes][family]


@pytest.fixture(scope="module")
def ready(corpus: Path) -> Iterator[Prepared]:
    value = {"output_dir": "runs/x", "corpus": {"files": [str(corpus)]}, "tokenizer": {"vocab_size": 400}}
    config = check_config(PretrainConfig, value, "test")
    files = corpus_files(config.corpus)
    with prepared(config, files, measure_amount(files, config.corpus)) as made:
        yield made


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], list[str]]:
    """Pretends a machine of so many operations a second; the list gets a line for each measurement."""

    def pretend(rate: float) -> list[str]:
        measured: list[str] = []

        def measure(plan: Plan, seconds: float) -> Probe:
            rows = plan.training.largest_batch
            flops = training_flops(plan.architecture, plan.length, plan.predicted) * plan.length * rows
            measured.append(
                f"{plan.architecture.layers} x {plan.architecture.hidden}, {rows} of {plan.length}"
            )
            return speed(flops / rate, rows * plan.length)

        monkeypatch.setattr(fits, "probe", measure)
        monkeypatch.setattr(fits, "matmul_rate", lambda *given, **named: rate)
        return measured

    return pretend


def fitted(ready: Prepared, seconds: float, tokens: float = PLENTY, longest: float = 1000) -> PretrainingFit:
    lines: list[str] = []
    return fit_pretraining(replace(ready, tokens=tokens), seconds, longest, report=lines.append)


@pytest.mark.parametrize(
    ("rate", "preset"),
    [(2e9, "tiny"), (3e10, "micro"), (3e11, "mini"), (1.5e12, "small"), (1e14, "base"), (1e15, "large")],
)
def test_a_faster_machine_trains_a_larger_model(machine, ready: Prepared, rate: float, preset: str) -> None:
    machine(rate)
    assert fitted(ready, 3600).preset == preset


def test_the_time_is_filled(machine, ready: Prepared) -> None:
    machine(3e10)
    for minutes in (1, 5, 60):
        assert fitted(ready, 60 * minutes).seconds == pytest.approx(60 * minutes, rel=0.03)


def test_a_model_that_is_taken_reads_enough_except_for_the_smallest(machine, ready: Prepared) -> None:
    machine(3e11)
    assert fitted(ready, 3600).is_enough
    machine(1e8)
    slow = fitted(ready, 60)
    assert (slow.preset, slow.is_enough) == ("tiny", False)


def test_hopeless_presets_are_not_measured(machine, ready: Prepared) -> None:
    measured = machine(4e9)
    fitted(ready, 3600)
    assert {line.split(",")[0] for line in measured} == {"2 x 128"}


def test_little_text_gets_a_small_model_and_a_short_run(machine, ready: Prepared) -> None:
    machine(1e14)
    fit = fitted(ready, 3600, tokens=1e6)
    assert (fit.preset, fit.ends_early) == ("mini", True)
    assert fit.reads == pytest.approx(50, rel=0.02)
    assert fit.seconds < 600


def test_short_documents_get_short_rows(machine, ready: Prepared) -> None:
    machine(1e11)
    assert fitted(ready, 600, longest=70).max_length == 64
    assert fitted(ready, 600, longest=20).max_length == 32


@pytest.mark.parametrize(("hours", "rows"), [(1, 256), (24, 1024), (240, 2048)])
def test_a_longer_time_on_a_gpu_has_larger_steps_and_is_filled(
    ready: Prepared, hours: float, rows: int
) -> None:
    fit = fit_pretraining(
        replace(ready, tokens=PLENTY), 3600 * hours, 1000, report=print, known=KNOWN_DEVICES["h200"]
    )
    assert fit.batch_size == rows
    assert fit.seconds == pytest.approx(3600 * hours, rel=0.03)


def test_a_slow_start_still_takes_some_steps(machine, ready: Prepared) -> None:
    machine(1e9)
    assert fitted(ready, 0.0).steps == 20


def test_a_real_measurement(ready: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertcli.advice.bench.timing.SIZES", {"cpu": (64,)})
    plan = fits._plan(ready, "tiny", 32, batch_size=8)
    measured = fits.probe(plan, 0.2)
    assert measured.seconds > 0
    assert 0 < measured.tokens <= 8 * 32
