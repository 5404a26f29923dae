"""What the machine decides at the start of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.config.run import FinetuneRecipe, as_kind
from bertcli.model.architecture import Architecture
from bertcli.system import hardware
from bertcli.system.memory import StepSizes
from bertcli.tasks.data import LabeledRows
from bertcli.training.resolve import decide_loop
from tests.finetunes import checked, spam_config


def test_a_text_of_more_windows_than_a_micro_batch_counts_in_memory_and_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = Architecture(99, 32, layers=2, heads=4, feed_forward=64, max_positions=64)
    training = as_kind(FinetuneRecipe, checked(spam_config(tmp_path)), {"training": {"optimizer": "adamw"}})
    seen = list[int]()

    def crowded(architecture: Architecture, sizes: StepSizes, *_: object, **__: object) -> str:
        seen.append(sizes.rows)
        return "warning: full"

    monkeypatch.setattr(hardware, "crowded", crowded)
    for largest in (1, 9):
        rows = LabeledRows(mean_length=20.0, tokens=100, largest=largest)
        decided = decide_loop(training.training, sizes, 32, tokens=100, labeled=rows)
        assert decided.micro_batch_size == 8
    assert seen == [8, 9]
    one, other = capsys.readouterr().err.splitlines()
    assert (one, other) == ("warning: full", f"{one}; a row has 9 windows: task.max_windows limits them")
