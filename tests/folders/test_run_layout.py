"""What stands where in a run folder."""

from __future__ import annotations

from pathlib import Path

from bertcli.folders.run_layout import RunLayout, checkpoint_model, is_best, run_of_model


def test_checkpoints_come_newest_first_and_nothing_else_is_one(tmp_path: Path) -> None:
    run = RunLayout(tmp_path)
    assert run.steps() == []
    names = (
        "step-00000900",
        "step-00010000",
        "step-00000900.2",
        "step-00000900.10",
        "best",
        "step-9",
        "notes",
    )
    for name in names:
        (run.checkpoints / name).mkdir(parents=True)
    (run.checkpoints / "step-00020000").write_text("a file")
    (run.checkpoints / "step-00030000").symlink_to("best")
    found = ["step-00010000", "step-00000900.10", "step-00000900.2", "step-00000900"]
    assert [path.name for path in run.steps()] == found
    assert run.steps()[0] == run.step(10000)
    assert [path.name for path in run.checkpoints.iterdir() if is_best(path)] == ["best"]


def test_a_model_folder_knows_its_run_by_its_place(tmp_path: Path) -> None:
    run = RunLayout(tmp_path / "run")
    assert run_of_model(run.model) == run.root
    assert run_of_model(checkpoint_model(run.step(5))) == run.root
    assert run_of_model(tmp_path / "bert-base") is None


def test_seeds_have_runs_of_their_own(tmp_path: Path) -> None:
    run = RunLayout(tmp_path)
    for name in ("seed-2", "seed-10", "seed-x", "seeds"):
        (tmp_path / name).mkdir()
    assert [path.name for path in run.part_folders()] == ["seed-10", "seed-2"]
    assert run.part("seed-2") == tmp_path / "seed-2"
