"""What goes wrong under a fine-tuning run ends in a clear message, or as if it had not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bertcli.system.errors import UserError
from bertcli.training.train import finetune_parts
from tests.faults import at_row, terminate
from tests.finetunes import Killed, checked, kill_at, run, spam_config, spam_files
from tests.small_runs import small_config, write_config


def test_sigterm_in_the_last_step_of_a_seed_begins_no_other(tmp_path: Path) -> None:
    own = checked(spam_config(spam_files(tmp_path), training={"epochs": 1}) | {"seeds": [1, 2]})
    with pytest.MonkeyPatch.context() as patch:
        at_row(patch, 6, terminate, "heldout")
        with pytest.raises(SystemExit):
            finetune_parts(own, resume=False, overwrite=False)
    assert (tmp_path / "run" / "seed-1").exists()
    assert not (tmp_path / "run" / "seed-2").exists()
    finetune_parts(own, resume=True, overwrite=False)
    assert (tmp_path / "run" / "model" / "model.safetensors").exists()

    other = own.model_copy(update={"seeds": [3]})
    (tmp_path / "run" / "seed-notes").mkdir()
    with pytest.raises(UserError, match="already has a run"):
        finetune_parts(other, resume=False, overwrite=False)
    finetune_parts(other, resume=False, overwrite=True)
    assert sorted(path.name for path in (tmp_path / "run").glob("seed-*")) == ["seed-3", "seed-notes"]


def with_many_checkpoints(folder: Path) -> dict[str, Any]:
    """The config of a run that keeps all of its checkpoints."""
    return spam_config(
        spam_files(folder),
        task={"metric": "loss"},
        training={"epochs": 3},
        evaluation={"every_steps": 5},
        checkpoint={"every_steps": 4, "keep_last": 9},
    )


@pytest.mark.parametrize("damage", ["flip", "remove"])
def test_a_damaged_best_model_comes_again(
    tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own = with_many_checkpoints(tmp_path)
    done = run(own)
    assert done.scores is not None
    weights = (done.model / "model.safetensors").read_bytes()
    best = tmp_path / "run" / "checkpoints" / "best" / "model.safetensors"
    if damage == "flip":
        content = bytearray(best.read_bytes())
        content[-5] ^= 4
        best.write_bytes(content)
    else:
        best.unlink()
    capsys.readouterr()
    again = run(own, resume=True)
    said = capsys.readouterr().err
    assert "best is damaged (" in said
    assert "going back to before step" in said
    assert again.scores is not None
    assert again.scores.loss == done.scores.loss
    assert (done.model / "model.safetensors").read_bytes() == weights


def test_two_kills_before_the_first_checkpoint_are_no_loss(tmp_path: Path) -> None:
    own = spam_config(
        spam_files(tmp_path),
        training={"epochs": 2},
        evaluation={"every_steps": 2},
        checkpoint={"every_steps": 50},
    )
    whole = own | {"output_dir": str(tmp_path / "whole")}
    weights = (run(whole).model / "model.safetensors").read_bytes()
    for row, split, resume in ((4, "heldout", False), (1, "train", True)):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, split, row)
            with pytest.raises(Killed):
                run(own, resume=resume)
    assert (run(own, resume=True).model / "model.safetensors").read_bytes() == weights


def test_checkpoints_after_a_lost_best_model_are_not_taken_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = with_many_checkpoints(tmp_path)
    done = run(own)
    assert done.scores is not None
    checkpoints, log = tmp_path / "run" / "checkpoints", tmp_path / "run" / "metrics.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    next(row for row in rows if (row["split"], row["step"]) == ("heldout", 5))["loss"] = 0.0  # the best
    log.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    shutil.rmtree(checkpoints / "best")
    with pytest.MonkeyPatch.context() as patch:
        kill_at(patch, "heldout", 5)
        with pytest.raises(Killed):
            run(own, resume=True)
    assert {path.name for path in checkpoints.glob("step-*")} <= {"step-00000004", "step-00000005"}
    again = run(own, resume=True)
    assert "are lost" not in capsys.readouterr().err
    assert again.scores is not None
    assert again.scores.loss == done.scores.loss


@pytest.mark.parametrize("kind", ["finetune", "pretrain"])
def test_a_finished_run_is_never_trained_again_by_a_resume(
    kind: str, corpus: Path, tmp_path: Path, run_bertcli: Callable[..., tuple[int, str, str]]
) -> None:
    root = tmp_path / "run"
    if kind == "finetune":
        config = spam_config(spam_files(tmp_path), training={"epochs": 0.5}, evaluation={"every_steps": 2})
    else:
        config = small_config(corpus, root, training={"steps": 3, "warmup_steps": 1})
        config["checkpoint"]["keep_best"] = True
    path = write_config(tmp_path / "config.yaml", config)
    assert run_bertcli(kind, path)[0] == 0
    model = (root / "model/model.safetensors").read_bytes()
    log = (root / "metrics.jsonl").read_bytes()

    def refused(why: str) -> None:
        code, _, said = run_bertcli(kind, path, "--resume")
        assert (code, why in said) == (2, True), said
        assert "another output_dir" in said
        assert (root / "model/model.safetensors").read_bytes() == model

    (root / "metrics.jsonl").write_text("")
    refused("metrics.jsonl has no evaluation, so that")
    (root / "metrics.jsonl").unlink()
    refused("metrics.jsonl is gone, so that")
    (root / "metrics.jsonl").write_bytes(log)
    shutil.rmtree(root / "checkpoints")
    refused("holds no checkpoint to go on from")
