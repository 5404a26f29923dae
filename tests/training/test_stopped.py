from __future__ import annotations

from pathlib import Path

from bertcli.folders.run_layout import RunLayout
from bertcli.training.commands import resume_command, stopped_at_once


def test_what_is_lost_is_what_came_after_the_newest_checkpoint(tmp_path: Path) -> None:
    layout, command = RunLayout(tmp_path), resume_command("pretrain", Path("my runs/a"))
    assert command == "bertcli pretrain 'my runs/a' --resume"
    assert stopped_at_once(layout, command) == (
        f"stopped at once: no checkpoint was saved yet; from the first step: {command}"
    )
    for name in ("step-00000500", "step-00001000", "step-00001000.1"):
        (layout.checkpoints / name).mkdir(parents=True)
    assert stopped_at_once(layout, command) == (
        f"stopped at once: all after the checkpoint of step 1000 is lost; to go on from there: {command}"
    )
