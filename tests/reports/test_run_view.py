"""What is a run and what is not; how far it is; which runs can be compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertcli.reports.build import MOST_RUNS, read_runs
from bertcli.reports.curves import MOST_SERIES, charts, series_of
from bertcli.reports.run_view import read_run
from bertcli.system.errors import UserError
from tests.finetunes import spam_config
from tests.reports.runs import report
from tests.small_runs import small_config, write_config


def pretraining(folder: Path, rows: list[dict[str, object]] | None = None) -> Path:
    """A run folder with nothing but a config and a log."""
    folder.mkdir(parents=True)
    write_config(folder / "config.yaml", small_config(Path("corpus.txt"), folder))
    log = rows if rows is not None else [{"step": 1, "split": "train", "mlm_loss": 7.0}]
    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in log))
    return folder


def finetuning(folder: Path, **sections: object) -> Path:
    folder.mkdir(parents=True)
    write_config(folder / "config.yaml", spam_config(folder, **sections))
    return folder


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: None, "no such folder; give the folder of a run"),
        (lambda folder: folder.write_text("x"), "is a file; give the folder of a run"),
        (lambda folder: folder.mkdir(), "is not the folder of a run: it has no config.yaml"),
        (
            lambda folder: pretraining(folder).joinpath("config.yaml").write_text("a: 1"),
            "this one has neither",
        ),
        (lambda folder: pretraining(folder).joinpath("metrics.jsonl").write_text("x\ny"), "line 1: damaged"),
        (
            lambda folder: pretraining(folder).joinpath("verdict.json").write_text("[]"),
            "verdict.json: damaged",
        ),
    ],
)
def test_what_is_no_run_is_refused(make, said, tmp_path: Path) -> None:
    make(tmp_path / "run")
    with pytest.raises(UserError, match="run") as error:
        read_run(tmp_path / "run")
    assert said in str(error.value)


def test_a_folder_inside_of_a_run_names_the_run(tmp_path: Path) -> None:
    model = pretraining(tmp_path / "run") / "model"
    model.mkdir()
    with pytest.raises(UserError, match=r"did you mean .*/run\?"):
        read_run(model)


def test_a_run_that_has_logged_nothing_says_so(tmp_path: Path) -> None:
    view = read_run(pretraining(tmp_path / "run", []))
    assert (view.state.word, view.state.steps) == ("stopped", "before the first logged step")
    assert "stopped" in report(view.root).head


def test_the_verdict_of_a_shorter_run_is_not_that_of_the_longer_one(tmp_path: Path) -> None:
    run = pretraining(tmp_path / "run")
    verdict = {"step": 1, "lines": ["verdict: fine"], "baseline": {}}
    (run / "verdict.json").write_text(json.dumps(verdict))
    assert read_run(run).verdict is not None
    with open(run / "metrics.jsonl", "a") as file:
        file.write('{"step": 2, "split": "train", "mlm_loss": 6.5}\n')
    assert read_run(run).verdict is None


def test_the_steps_of_a_labeled_task_follow_from_its_epochs(tmp_path: Path) -> None:
    run = finetuning(tmp_path / "run")
    (run / "metrics.jsonl").write_text('{"step": 3, "epoch": 0.5, "split": "train", "loss": 1.0}\n')
    assert read_run(run).state.steps == "after 3 of 18 steps"


def test_runs_of_unlike_kinds_are_refused(tmp_path: Path) -> None:
    runs = [pretraining(tmp_path / "a"), finetuning(tmp_path / "b")]
    with pytest.raises(UserError, match=r"is a run of pretraining, .* one of classification"):
        read_runs(runs)


def test_too_many_runs_and_one_run_twice_are_refused(tmp_path: Path) -> None:
    run = pretraining(tmp_path / "run")
    with pytest.raises(UserError, match="given twice"):
        read_runs([run, tmp_path / "x" / ".." / "run"])
    with pytest.raises(UserError, match=f"compares at most {MOST_RUNS}"):
        read_runs([run] * (MOST_RUNS + 1))


def test_runs_with_one_name_have_their_paths(tmp_path: Path) -> None:
    runs = [pretraining(tmp_path / side / "run") for side in ("a", "b")]
    assert [view.name for view in read_runs(runs)] == list(map(str, runs))


def test_many_seeds_are_cut_and_counted(tmp_path: Path) -> None:
    seeds = list(range(MOST_SERIES + 3))
    run = finetuning(tmp_path / "run", seeds=seeds)
    for seed in seeds:
        own = finetuning(run / f"seed-{seed}", seeds=[seed])
        (own / "metrics.jsonl").write_text('{"step": 1, "epoch": 1, "split": "heldout", "loss": 1.0}\n')
    series, left_out = series_of([read_run(run)])
    assert (len(series), left_out) == (MOST_SERIES, 3)


def test_any_figure_of_a_log_has_a_chart_and_empty_ones_are_left_out(tmp_path: Path) -> None:
    rows = [
        {
            "step": step,
            "split": "train",
            "odd_loss": 1.0 / step,
            "never_loss": None,
            "tokens": step,
            "seconds": 1,
        }
        for step in range(1, 2000)
    ]
    found = charts(series_of([read_run(pretraining(tmp_path / "run", rows))])[0], {})
    assert [chart.title for chart in found] == ["odd loss"]
    assert set(found[0].plots) == {"step", "tokens", "seconds"}
    assert len(found[0].rows) <= 40
    assert all(len(plot.curves[0].path) < 5000 for plot in found[0].plots.values())


def test_eight_long_runs_with_many_figures_stay_small(tmp_path: Path) -> None:
    def row(step: int, split: str, run: int) -> dict[str, object]:
        figures = {f"term{number}_loss": 1 / (step + number + run) for number in range(20)}
        return {"step": step, "split": split, "tokens": 997 * step, "seconds": 0.3 * step, **figures}

    runs = [
        pretraining(
            tmp_path / f"run-{run}",
            [row(step, split, run) for step in range(1, 400) for split in ("train", "heldout")],
        )
        for run in range(MOST_RUNS)
    ]
    found = report(*runs)  # which looks at the size
    assert "8 runs of pretraining" in found.head
