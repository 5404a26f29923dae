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
    run.config.write_text("seeds: [2, 10]\n")
    assert [path.name for path in run.part_folders()] == ["seed-10", "seed-2"]
    assert run.part("seed-2") == tmp_path / "seed-2"


def test_a_run_in_the_folder_of_another_one_is_no_part_of_it_unless_its_config_says_so(
    tmp_path: Path,
) -> None:
    layout = RunLayout(tmp_path)
    for name in ("seed-1", "fold-2", "final", "trial-003", "trial-003-seed-7", "mine"):
        (tmp_path / name).mkdir()
    assert layout.part_folders() == []
    layout.config.write_text("seeds: null\nfolds: null\n")
    assert layout.part_folders() == []
    layout.config.write_text("seeds:\n- 1\nfolds: null\n")
    assert [path.name for path in layout.part_folders()] == ["seed-1"]
    assert RunLayout(tmp_path / "seed-1").is_part
    layout.config.write_text("folds: 3\n")
    assert [path.name for path in layout.part_folders()] == ["final", "fold-2"]
    assert not RunLayout(tmp_path / "seed-1").is_part
    layout.trials.touch()
    assert RunLayout(tmp_path / "trial-003-seed-7").is_part
