"""Calls of the Python API leave handlers, streams and random numbers as they were, also after Ctrl-C."""

from __future__ import annotations

import linecache
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import Mock

import pytest
import torch

import bertcli
from bertcli.system.signals import said_on_ctrl_c, stop_signal
from tests.small_runs import small_config, write_corpus

TEXT = "A [MASK]."
CASES: dict[str, Callable[[Path, Path], Any]] = {
    "load": lambda models, folder: bertcli.load(folder),
    "fill_mask": lambda models, folder: bertcli.load(folder).fill_mask(TEXT),
    "predict": lambda models, folder: bertcli.load(models / "multi-label").predict(TEXT),
    "embed": lambda models, folder: bertcli.load(folder).embed(TEXT),
    "attention": lambda models, folder: bertcli.load(folder).attention(TEXT),
}


def state() -> dict[str, Any]:
    """All that a call must leave as it was."""
    deterministic: Any = torch.utils.deterministic  # pyright: ignore[reportAttributeAccessIssue]
    return {
        "handlers": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "threads": torch.get_num_threads(),
        "generator": torch.get_rng_state().tolist(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "only warns": torch.is_deterministic_algorithms_warn_only_enabled(),
        "filled": deterministic.fill_uninitialized_memory,
        "dtype": torch.get_default_dtype(),
        "filters": list(warnings.filters),
        "environment": dict(os.environ),
        "streams": (sys.stdout, sys.stderr),
    }


def disturb(*_: object, **__: object) -> None:
    """What training may leave behind, on other devices too."""
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.set_num_threads(torch.get_num_threads() + 1)
    torch.set_default_dtype(torch.float64)
    warnings.simplefilter("ignore")
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def own_ctrl_c() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell ignores it
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", CASES)
def test_a_call_leaves_all_as_it_was(models: Path, folder: Path, own_ctrl_c: None, name: str) -> None:
    before = state()
    CASES[name](models, folder)
    assert state() == before


@pytest.mark.parametrize(
    "error", [None, bertcli.UserError("no"), KeyboardInterrupt(), MemoryError(), SystemExit(3)]
)
@pytest.mark.parametrize("call", [bertcli.pretrain, bertcli.finetune])
def test_training_leaves_all_as_it_was(
    monkeypatch: pytest.MonkeyPatch, own_ctrl_c: None, call: Callable[..., Any], error: BaseException | None
) -> None:
    def train(*_: object, **__: object) -> dict[str, Any]:
        disturb()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if error is not None:
            raise error
        return {}

    monkeypatch.setattr(f"bertcli.training.train.run_{call.__name__.removesuffix('e')}ing", train)
    before = state()
    expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else bertcli.UserError
    with nullcontext() if error is None else pytest.raises(expected):
        call({})
    assert state() == before


def test_a_caller_who_refuses_other_algorithms_still_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bertcli.training.train.run_pretraining", disturb)  # which only warns of them
    torch.use_deterministic_algorithms(True)
    try:
        before = state()
        bertcli.pretrain({})
        assert state() == before
    finally:
        torch.use_deterministic_algorithms(False)


def test_ctrl_c_at_any_line_leaves_all_as_it_was(monkeypatch: pytest.MonkeyPatch, own_ctrl_c: None) -> None:
    monkeypatch.setattr("bertcli.training.train.run_pretraining", disturb)
    before, ended, moment = state(), 0, 0
    for moment in range(1, 1_000):
        lines = iter(range(moment, -1, -1))

        def trace(frame: FrameType, event: str, _: object, lines: Iterator[int] = lines) -> Any:
            if "/bertcli/" not in frame.f_code.co_filename:
                return None
            if linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip() == "guard.holds = True":
                return trace  # Python calls no handler before it: the block begins with it
            if event == "line" and next(lines, None) == 0:
                signal.raise_signal(signal.SIGINT)
            return trace

        interrupted = False
        sys.settrace(trace)
        try:
            bertcli.pretrain({})
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(None)
        assert state() == before, f"Ctrl-C at line event {moment}"
        ended += not interrupted
        if next(lines, None) is not None:
            break
    assert ended == 1
    assert moment > 60


def test_a_second_ctrl_c_does_not_end_the_callers_process(
    monkeypatch: pytest.MonkeyPatch, own_ctrl_c: None, tmp_path: Path
) -> None:
    def train(*_: object) -> None:
        with said_on_ctrl_c(lambda: "stopped"):
            try:
                signal.raise_signal(signal.SIGINT)
            finally:
                with stop_signal(lambda: "lost"):
                    signal.raise_signal(signal.SIGINT)
                    signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("bertcli.training.train.run_pretraining", lambda *_, **__: train())
    before = state()
    with pytest.raises(KeyboardInterrupt):
        bertcli.pretrain({})
    assert state() == before


def test_ctrl_c_before_training_leaves_the_next_one_to_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_ctrl_c: None
) -> None:
    config = small_config(write_corpus(tmp_path / "corpus.txt"), tmp_path / "run")
    monkeypatch.setattr("bertcli.training.pretraining._prepare", Mock(side_effect=KeyboardInterrupt))
    before = state()
    with pytest.raises(KeyboardInterrupt):
        bertcli.pretrain(config)
    assert state() == before


def test_closed_streams_stay_closed(
    monkeypatch: pytest.MonkeyPatch, folder: Path, corpus: Path, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", None)
        patch.setattr("sys.stdout", None)
        with pytest.raises(bertcli.UserError):
            bertcli.load(folder).fill_mask("no mask")
        bertcli.pretrain(small_config(corpus, tmp_path / "run", training={"steps": 1, "warmup_steps": 0}))
        assert (sys.stdout, sys.stderr) == (None, None)
