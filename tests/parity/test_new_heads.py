"""New heads on a trained body have the distribution that transformers draws for the family."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers")

from bertcli.config.task import TaskSettings  # noqa: E402
from bertcli.folders.task_folder import load_for_finetuning  # noqa: E402
from bertcli.folders.weights import hf_name  # noqa: E402
from tests.parity.families import FIRST, Case, class_of, saved, their_config  # noqa: E402

LABELS = tuple(f"label {number}" for number in range(400))
"""Many, so that the deviations of a small layer are known well."""


@pytest.mark.parametrize(
    ("task", "kind"), [("classification", "sequences"), ("token-classification", "tokens")]
)
@pytest.mark.parametrize("case", FIRST, ids=str)
def test_a_new_head_is_drawn_as_transformers_draws_it(
    tmp_path: Path, case: Case, task: str, kind: str
) -> None:
    saved(tmp_path, case, "encoder")
    settings = TaskSettings(type=task, text="text")  # pyright: ignore[reportArgumentType]
    torch.manual_seed(0)
    loaded = load_for_finetuning(tmp_path, settings, LABELS)
    assert set(loaded.report.new_parts()) <= {"task head", "pooler"}
    theirs = class_of(case, kind)(their_config(case, num_labels=len(LABELS))).state_dict()
    ours = {
        hf_name(loaded.report.family, name, kind): value for name, value in loaded.model.state_dict().items()
    }
    assert loaded.report.new
    for name in loaded.report.new:
        got, want = ours[name], theirs[name]
        if got.ndim == 1:
            assert torch.equal(got, want), name  # zeros, or ones of a norm
            continue
        assert got.std() == pytest.approx(float(want.std()), rel=0.12), name
        largest = float(got.abs().max() / got.std())
        assert (largest < 2.4) == (float(want.abs().max() / want.std()) < 2.4), name
