from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from bertcli.folders.mark import new_marked_folder, sweep
from bertcli.folders.run_layout import RunLayout
from bertcli.system.errors import UserError
from bertcli.training import checkpoint as module
from bertcli.training.checkpoint import (
    CheckpointWriter,
    RunState,
    find_damage,
    load_state,
    newest_checkpoint,
)


def save(folder: Path, step: int, keep_last: int = 3) -> Path:
    def save_model(path: Path, weights: Mapping[str, Tensor]) -> None:
        path.mkdir()
        (path / "weights").write_bytes(bytes(100) + step.to_bytes(4, "little"))

    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters())
    writer = CheckpointWriter(RunLayout(folder), model, optimizer, save_model, keep_last)
    return writer.write(RunState(step=step, tokens=10 * step), {}, {"word/exp_avg": torch.zeros(3)})


def test_the_newest_few_are_kept(tmp_path: Path) -> None:
    for step in (5, 10, 100, 15):
        save(tmp_path, step, keep_last=2)
    assert [path.name for path in RunLayout(tmp_path).steps()] == ["step-00000100", "step-00000015"]
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {"step-00000100", "step-00000015"}
    newest = newest_checkpoint(RunLayout(tmp_path), report=pytest.fail)
    assert newest is not None
    assert load_state(newest) == RunState(step=100, tokens=1000)


@pytest.mark.parametrize("name", ["model/weights", "optimizer.safetensors", "state.json", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "truncate", "remove"])
def test_any_damage_is_recognized_named_and_passed_over(tmp_path: Path, name: str, damage: str) -> None:
    good, bad = save(tmp_path, 5), save(tmp_path, 10)
    path = bad / name
    content = path.read_bytes()
    if damage == "flip":
        position = content.index(b'"state.json"') + 3 if name == "manifest.json" else len(content) // 2
        path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
    elif damage == "truncate":
        path.write_bytes(content[:-9])
    else:
        path.unlink()

    assert find_damage(good) is None
    said: list[str] = []
    assert newest_checkpoint(RunLayout(tmp_path), said.append) == good
    assert len(said) == 1
    assert str(bad) in said[0]
    assert f"is damaged ({name}" in said[0] or f"the content of {name}" in said[0] or name == "manifest.json"


def test_a_full_disk_leaves_earlier_checkpoints_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = save(tmp_path, 5)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module, "save_file", full)
    with pytest.raises(UserError, match=r"no space left on device; what was saved before is intact"):
        save(tmp_path, 10)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == [good.name]
    assert find_damage(good) is None


def test_a_link_that_leads_nowhere_is_a_message(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").symlink_to("gone")
    with pytest.raises(UserError, match="the checkpoint could not be written: file exists"):
        save(tmp_path, 5)


def test_what_a_killed_writer_left_is_no_checkpoint(tmp_path: Path) -> None:
    left = new_marked_folder(tmp_path / "checkpoints", "step-00000009.partial")
    assert newest_checkpoint(RunLayout(tmp_path), report=pytest.fail) is None
    save(tmp_path, 9)
    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {left.name, "step-00000009"}
    sweep([tmp_path / "checkpoints"])
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00000009"]
