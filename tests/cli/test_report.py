"""`bertcli report` through the command line, and `logging.report` at the end of both kinds of runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.finetunes import spam_config, spam_files
from tests.reports.runs import pretraining
from tests.small_runs import small_config, write_config

Bertcli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def pretrained(run_bertcli: Bertcli, corpus: Path, tmp_path: Path) -> tuple[Path, str]:
    """The folder of a run that wrote its report, and what it said."""
    config = small_config(corpus, tmp_path / "run", training={"steps": 2}, logging={"report": True})
    code, _, err = run_bertcli("pretrain", write_config(tmp_path / "config.yaml", config))
    assert code == 0, err
    return tmp_path / "run", err


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pretraining(tmp_path_factory.mktemp("run"), training={"steps": 2})


def test_a_pretraining_run_writes_its_report_if_asked(
    run_bertcli: Bertcli, pretrained: tuple[Path, str]
) -> None:
    run, err = pretrained
    page = run / "report.html"
    assert f"the report is in {page}\n" in err
    assert "Masked words" in page.read_text()
    code, out, err = run_bertcli("report", run)
    assert (code, out, err) == (0, f"{page}\n", "")


def test_a_finetuning_run_too_and_a_report_goes_where_the_user_says(
    run_bertcli: Bertcli, tmp_path: Path
) -> None:
    config = spam_config(spam_files(tmp_path), training={"epochs": 1}, logging={"report": True}, seeds=[1, 2])
    code, _, err = run_bertcli("finetune", write_config(tmp_path / "config.yaml", config))
    assert code == 0
    page = tmp_path / "run" / "report.html"
    assert f"the report is in {page}\n" in err
    assert "Scores of each seed" in page.read_text()
    other = tmp_path / "mine.html"
    code, out, _ = run_bertcli("report", tmp_path / "run", "--output", other, "--attributions")
    assert (code, out) == (0, f"{other}\n")
    assert "integrated gradients" in other.read_text()
    code, out, _ = run_bertcli(
        "report", tmp_path / "run" / "seed-1", tmp_path / "run" / "seed-2", "--output", other
    )
    assert code == 0
    assert "2 runs of classification" in other.read_text()


def test_a_foreign_report_costs_a_run_nothing_but_a_line(
    run_bertcli: Bertcli, pretrained: tuple[Path, str], tmp_path: Path
) -> None:
    run, _ = pretrained
    (run / "report.html").write_text("mine")
    code, out, err = run_bertcli(
        "pretrain", tmp_path / "config.yaml", "--resume", "--set", "training.steps=3"
    )
    assert (code, out) == (0, f"{run / 'model'}\n")
    assert "warning: the report could not be written: " in err
    assert (run / "report.html").read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no/such/run"], "no/such/run: no such folder"),
        (["{run}/model"], "is not the folder of a run"),
        (["{run}", "{run}"], "a run is given twice"),
        (["{run}", "--output", "{run}/report.txt"], "give one of .html"),
        (["{run}", "--attributions"], "explains the mistakes of one fine-tuning run"),
        (["{run}", "--device", "tpu"], "tpu"),
    ],
)
def test_bad_input_is_one_message(run_bertcli: Bertcli, run: Path, arguments: list[str], said: str) -> None:
    code, out, err = run_bertcli("report", *(each.format(run=run) for each in arguments))
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err
