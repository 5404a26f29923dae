"""One config, several seeds: a run for each, their mean and deviation, the best one's model."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

from bertcli.system.errors import UserError
from bertcli.training.metrics_log import MetricsLog
from bertcli.training.train import finetune_parts
from tests.finetunes import Killed, checked, rows_but_times, run, spam_config, spam_files
from tests.small_runs import read_rows


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return spam_files(tmp_path_factory.mktemp("files"))


def config(files: Path, root: Path, **sections: Any) -> dict[str, Any]:
    task = {"dev": None, "dev_fraction": 0.25, "metric": "loss"} | sections.pop("task", {})
    return spam_config(
        files,
        output_dir=str(root),
        seeds=[1, 2],
        task=task,
        training={"epochs": 1},
        checkpoint={"every_steps": 2},
        **sections,
    )


@pytest.fixture(scope="module")
def done(files: Path) -> Path:
    finetune_parts(checked(config(files, files / "run")), resume=False, overwrite=False)
    return files / "run"


def losses(root: Path) -> dict[int, float]:
    return {
        seed: read_rows(root / f"seed-{seed}" / "metrics.jsonl", "heldout")[-1]["loss"] for seed in (1, 2)
    }


def test_the_summary_holds_every_run_and_their_spread(done: Path) -> None:
    summary = json.loads((done / "seeds.json").read_text())
    assert (summary["metric"], summary["positive_label"]) == ("loss", "spam")
    assert summary["runs"].keys() == {"1", "2"}
    for seed, loss in losses(done).items():
        assert summary["runs"][str(seed)]["loss"] == pytest.approx(loss)
    for name in ("loss", "accuracy", "macro_f1"):
        values = [each[name] for each in summary["runs"].values()]
        assert summary["metrics"][name]["mean"] == pytest.approx(statistics.fmean(values))
        assert summary["metrics"][name]["std"] == pytest.approx(statistics.stdev(values))
    assert summary["metrics"]["loss"]["std"] > 0  # head, order and dropout differ


def test_the_model_of_the_best_run_is_kept(done: Path) -> None:
    found = losses(done)
    best = min(found, key=lambda seed: found[seed])
    assert json.loads((done / "seeds.json").read_text())["best"] == best
    for path in (done / "model").iterdir():
        assert path.read_bytes() == (done / f"seed-{best}" / "model" / path.name).read_bytes()


def test_all_runs_are_judged_by_the_same_rows(done: Path) -> None:
    cards = [(done / f"seed-{seed}" / "model" / "README.md").read_text() for seed in (1, 2)]
    assert all("24 rows of train.tsv, split off" in card for card in cards)
    configs = [(done / f"seed-{seed}" / "config.yaml").read_text() for seed in (1, 2)]
    assert all("\nseed: 7\n" in text for text in configs)  # which splits the file: tests/tasks/test_data


def test_a_run_of_one_seed_is_that_of_seed(done: Path, files: Path, tmp_path: Path) -> None:
    """Where no rows are split off, `seeds: [1]` differs from `seed: 1` in nothing."""
    dev = {"dev": str(files / "dev.tsv"), "dev_fraction": None}
    alone = config(files, tmp_path / "alone", task=dev) | {"seed": 1, "seeds": None}
    run(alone)
    seeds = config(files, tmp_path / "seeds", task=dev) | {"seeds": [1]}
    finetune_parts(checked(seeds), resume=False, overwrite=False)
    assert rows_but_times(tmp_path / "alone" / "metrics.jsonl") == rows_but_times(
        tmp_path / "seeds" / "seed-1" / "metrics.jsonl"
    )
    assert json.loads((tmp_path / "seeds" / "seeds.json").read_text())["metrics"]["loss"]["std"] is None


def test_killed_in_the_second_run_it_ends_as_undisturbed(
    done: Path, files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = checked(config(files, tmp_path / "run"))
    write = MetricsLog.write

    def write_and_die(self: MetricsLog, row: dict[str, Any]) -> None:
        write(self, row)
        if row["step"] == 3 and self._path.parent.name == "seed-2":
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MetricsLog, "write", write_and_die)
        with pytest.raises(Killed):
            finetune_parts(own, resume=False, overwrite=False)
    assert not (tmp_path / "run" / "model").exists()
    with pytest.raises(UserError, match="already has a run"):
        finetune_parts(own, resume=False, overwrite=False)
    capsys.readouterr()
    finetune_parts(own, resume=True, overwrite=False)
    said = capsys.readouterr().err
    assert f"{tmp_path / 'run' / 'seed-1'} is finished" in said
    assert f"resuming from {tmp_path / 'run' / 'seed-2' / 'checkpoints' / 'step-00000002'}, step 2" in said
    assert (tmp_path / "run" / "seeds.json").read_bytes() == (done / "seeds.json").read_bytes()
    for seed in (1, 2):
        rows = [rows_but_times(root / f"seed-{seed}" / "metrics.jsonl") for root in (tmp_path / "run", done)]
        assert rows[0] == rows[1]


def test_the_folder_is_that_of_these_seeds(done: Path, files: Path, tmp_path: Path) -> None:
    own = config(files, done)
    with pytest.raises(UserError, match="already has a run"):
        finetune_parts(checked(own), resume=False, overwrite=False)
    with pytest.raises(UserError, match=r"seeds: \[1, 2\] in the run, \[1, 3\] now"):
        finetune_parts(checked(own | {"seeds": [1, 3]}), resume=True, overwrite=False)
    with pytest.raises(UserError, match=r"seeds: \[1, 2\] in the run, null now"):
        run(own | {"seeds": None}, resume=True)
    single = config(files, tmp_path / "run") | {"seeds": None}
    run(single)
    with pytest.raises(UserError, match=r"seeds: null in the run, \[1, 2\] now"):
        finetune_parts(checked(single | {"seeds": [1, 2]}), resume=True, overwrite=False)


def test_without_dev_data_the_first_runs_model_is_kept(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = config(files, tmp_path / "run", task={"dev_fraction": None})
    assert finetune_parts(checked(own), resume=False, overwrite=False).scores is None
    assert "the model of the first seed is kept" in capsys.readouterr().err
    models = [
        tmp_path / "run" / name / "model.safetensors" for name in ("model", "seed-1/model", "seed-2/model")
    ]
    weights = [path.read_bytes() for path in models]
    assert weights[0] == weights[1] != weights[2]


def test_a_config_that_cannot_run_leaves_the_folder_free(files: Path, tmp_path: Path) -> None:
    own = config(files, tmp_path / "run", task={"metric": "loss"})
    own["training"]["freeze_layers"] = 3
    with pytest.raises(UserError, match="freeze_layers"):
        finetune_parts(checked(own), resume=False, overwrite=False)
    own["training"]["freeze_layers"] = 2
    finetune_parts(checked(own), resume=False, overwrite=False)


def test_an_overwritten_folder_keeps_nothing_of_the_seeds_before(files: Path, tmp_path: Path) -> None:
    own = config(files, tmp_path / "run")
    finetune_parts(checked(own), resume=False, overwrite=False)
    begun = checked(own | {"model": str(tmp_path / "run" / "seed-2")})
    with pytest.raises(UserError, match="--overwrite would delete"):
        finetune_parts(begun, resume=False, overwrite=True)
    finetune_parts(checked(own | {"seeds": [3]}), resume=False, overwrite=True)
    assert [path.name for path in tmp_path.glob("run/seed-*")] == ["seed-3"]
    assert json.loads((tmp_path / "run" / "seeds.json").read_text())["runs"].keys() == {"3"}
