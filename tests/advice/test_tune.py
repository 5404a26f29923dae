"""`bertcli tune` as a user calls it: its files, its result, kills at each moment, and what it refuses."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

import bertcli
from bertcli.advice.study import Study
from bertcli.advice.tune import tune
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_config
from bertcli.system.errors import UserError
from bertcli.training.fit import DivergedError
from bertcli.training.metrics_log import MetricsLog
from tests.finetunes import Killed, rows_but_times, run, spam_config, spam_files
from tests.small_runs import run_cli, write_config

pytest.importorskip("optuna")
TRIALS = 4


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return spam_files(tmp_path_factory.mktemp("files"))


def config(files: Path, root: Path, **sections: Any) -> dict[str, Any]:
    """The loss is the metric, since it differs in every run."""
    sections = {"task": {"metric": "loss"}, "training": {"epochs": 1}} | sections
    return spam_config(files, output_dir=str(root), **sections)


@pytest.fixture(scope="module")
def searched(files: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], str]:
    """The folder, the JSON and the messages of a search with time enough."""
    root = tmp_path_factory.mktemp("searched") / "run"
    path = write_config(root.with_suffix(".yaml"), config(files, root))
    done = run_cli("tune", path, "--minutes", 60, "--trials", TRIALS, "--json")
    assert done.returncode == 0, done.stderr
    return Path(f"{root}-tune"), json.loads(done.stdout), done.stderr


Searched = tuple[Path, dict[str, Any], str]


def test_the_first_trial_is_the_run_of_the_given_config(
    searched: Searched, files: Path, tmp_path: Path
) -> None:
    root, found, _ = searched
    run(config(files, tmp_path / "run"))
    rows = rows_but_times(tmp_path / "run" / "metrics.jsonl")
    assert rows_but_times(root / "trial-000" / "metrics.jsonl") == rows
    assert found["trials"][0]["score"] == min(row["loss"] for row in rows if row["split"] == "heldout")
    assert found["trials"][0]["changed"] == {}


def test_the_result_names_the_best_trial(searched: Searched) -> None:
    _, found, said = searched
    scores = [trial["score"] for trial in found["trials"] if not trial["is_pruned"]]
    assert len(found["trials"]) == TRIALS
    assert found["metric"] == "loss"
    assert found["trials"][found["best"]]["score"] == min(scores) < found["trials"][0]["score"]
    assert found["verdict"] in said
    assert "trial 1: pooling mean (" in said
    assert "step 1" not in said  # what runs print is in their log


def test_the_best_is_compared_with_fresh_seeds(searched: Searched) -> None:
    root, found, _ = searched
    for number in (0, found["best"]):
        losses = [
            min(row["loss"] for row in rows_but_times(path / "metrics.jsonl", "heldout"))
            for path in (root / f"trial-{number:03d}-seed-{seed}" for seed in (8, 9, 10))
        ]
        assert found["trials"][number]["fresh"] == losses
    assert found["gain"] is not None
    assert found["recommended"] == (found["best"] if found["gain"] > found["noise"] else 0)


def test_the_written_config_is_ready_for_finetune(searched: Searched, files: Path) -> None:
    root, found, _ = searched
    assert found["config"] == str(root / "best.yaml")
    best = load_config(FinetuneConfig, root / "best.yaml")
    given = config(files, root)
    changed = found["trials"][found["recommended"]]["changed"]
    expected = {f"training.{key}": value for key, value in given["training"].items()} | changed
    assert {key: attrgetter(key)(best) for key in expected} == expected
    assert best.output_dir == str(root / "best")
    assert best.task.train == given["task"]["train"]


def test_only_the_best_trial_keeps_its_model(searched: Searched) -> None:
    root, found, _ = searched
    assert [path.parent.name for path in root.glob("*/model")] == [f"trial-{found['best']:03d}"]
    assert found["model"] == str(root / f"trial-{found['best']:03d}" / "model")
    assert not list(root.glob("*/checkpoints/*"))
    assert "What was tried" in (root / "report.html").read_text()


def test_a_finished_search_is_not_searched_again(searched: Searched, tmp_path: Path) -> None:
    root, found, _ = searched
    moved = shutil.copytree(root, tmp_path / "moved-tune")
    again = tune(moved, resume=True)  # the limits are those of the search
    for key in ("trials", "gain", "noise", "verdict"):
        assert again[key] == found[key]
    with pytest.raises(UserError, match="already has a run: --resume continues it"):
        tune(moved)


def test_the_folder_of_a_run_is_no_search(searched: Searched) -> None:
    trial = searched[0] / "trial-000"
    with pytest.raises(UserError, match=r"is a run, and not a search; give its config: .*config\.yaml"):
        tune(trial, overwrite=True)
    assert (trial / "config.yaml").is_file()


def test_overwrite_removes_all_trials(searched: Searched, files: Path, tmp_path: Path) -> None:
    root, *_ = searched
    given = config(files, tmp_path / "run")
    shutil.copytree(root, tmp_path / "run-tune")
    tune(given, minutes=60, trials=1, overwrite=True)
    assert [path.name for path in (tmp_path / "run-tune").glob("trial-*")] == ["trial-000"]


def die_after(patch: pytest.MonkeyPatch, own: Any, name: str, is_time: Callable[..., bool]) -> None:
    plain = getattr(own, name)

    def run_and_die(*given: Any) -> Any:
        result = plain(*given)
        if is_time(*given):
            raise Killed
        return result

    patch.setattr(own, name, run_and_die)


def kill_at(patch: pytest.MonkeyPatch, moment: str) -> None:
    """Let the next search die at a moment."""

    def evaluates(log: Any, row: Any) -> bool:
        return row["split"] == "heldout" and ("-seed-" in str(log._path)) == (moment == "fresh seed")

    def die(*given: Any) -> None:
        raise Killed

    if moment == "ended":
        patch.setattr(Study, "tell", die)
    elif moment in ("evaluated", "fresh seed"):
        die_after(patch, MetricsLog, "write", evaluates)
    else:
        name = {"proposed": "ask", "valued": "fill", "told": "tell"}[moment]
        die_after(patch, Study, name, lambda *given: True)


def test_killed_at_each_moment_it_ends_as_undisturbed(
    searched: Searched, files: Path, tmp_path: Path
) -> None:
    root, found, _ = searched
    given = config(files, tmp_path / "run")
    for moment in ("proposed", "valued", "evaluated", "ended", "told", "fresh seed"):
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, moment)
            with pytest.raises(Killed):
                tune(given, minutes=60, trials=TRIALS, resume=True)
    again = tune(given, minutes=60, trials=TRIALS, resume=True)
    for one, other in zip(again["trials"], found["trials"], strict=True):
        assert one | {"seconds": 0} == other | {"seconds": 0}
    assert (again["gain"], again["recommended"]) == (found["gain"], found["recommended"])
    names = {path.name for path in root.glob("trial-*")}
    assert {path.name for path in (tmp_path / "run-tune").glob("trial-*")} == names
    for name in names:
        rows = [rows_but_times(each / name / "metrics.jsonl") for each in (root, tmp_path / "run-tune")]
        assert rows[0] == rows[1]
    assert [path.parent.name for path in (tmp_path / "run-tune").glob("*/model")] == [
        f"trial-{found['best']:03d}"
    ]


def test_without_time_only_the_given_config_is_run(files: Path, tmp_path: Path) -> None:
    """The call of the Python API."""
    given = config(files, tmp_path / "run") | {"seeds": [3, 4]}
    found = bertcli.tune(given, minutes=0.001)
    assert len(found["trials"]) == 1
    saved = load_config(FinetuneConfig, tmp_path / "run-tune" / "trial-000" / "config.yaml")
    assert (saved.seeds, saved.seed) == ([3], 7)
    assert load_config(FinetuneConfig, tmp_path / "run-tune" / "best.yaml").seeds == [3, 4]


def test_a_trial_that_diverges_is_not_the_best(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bertcli.advice import tune as module

    plain = module.finetune

    def diverges(own: FinetuneConfig, *given: Any, **named: Any) -> Any:
        if own.output_dir.endswith("trial-001"):
            raise DivergedError("10 steps in a row")
        return plain(own, *given, **named)

    monkeypatch.setattr(module, "finetune", diverges)
    found = tune(config(files, tmp_path / "run"), minutes=60, trials=2)
    assert [trial["score"] for trial in found["trials"]][1] is None
    assert found["best"] == 0
    assert "diverged" in capsys.readouterr().err


def test_what_it_refuses(
    searched: Searched, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, *_ = searched
    given = config(files, tmp_path / "run")
    with pytest.raises(UserError, match=r"compares trials by dev data: give task\.dev or task\.dev_fraction"):
        tune(given | {"task": given["task"] | {"dev": None}})
    done = run_cli("finetune", root, "--resume")
    assert (done.returncode, "is the folder of a search. To continue it" in done.stderr) == (2, True)
    with pytest.raises(UserError, match="minutes: expected a number above 0; got -1"):
        bertcli.tune(given, minutes=-1)
    moved = shutil.copytree(root, tmp_path / "moved-tune")
    with pytest.raises(UserError, match=r"cannot resume: training\.epochs changed since the start"):
        tune(moved, ["training.epochs=2"], resume=True)
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(
        UserError, match=r"optuna is not installed; the search needs: pip install 'bertcli\[tune\]'"
    ):
        tune(given)


def test_python_resumes_a_search_with_its_own_limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[dict[str, Any]] = []
    monkeypatch.setattr("bertcli.advice.tune.tune", lambda config, **keys: given.append(keys) or {})
    bertcli.tune(tmp_path, resume=True)
    assert (given[0]["minutes"], given[0]["trials"]) == (None, None)
