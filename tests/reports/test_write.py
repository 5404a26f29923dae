"""Where a report goes, and what it never overwrites."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bertcli.folders.mark import read_note
from bertcli.reports import build as write
from bertcli.reports.build import write_report, write_report_if_asked
from bertcli.reports.page import ReportOptions
from bertcli.system.errors import UserError
from tests.finetunes import checked, spam_config
from tests.finetunes import run as finetune


@pytest.fixture
def run(finetuned: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finetuned.parent, tmp_path / "spam")) / finetuned.name


def test_a_report_is_the_runs_own_file_and_is_replaced_by_the_next(run: Path) -> None:
    path = write_report([run], ReportOptions())
    assert path == run / "report.html"
    note = read_note(run)
    assert note is not None
    assert "report.html" in note.files
    path.write_text(path.read_text())
    assert write_report([run], ReportOptions()) == path


def test_overwrite_removes_it_with_the_run(run: Path) -> None:
    write_report([run], ReportOptions())
    finetune(spam_config(run.parent, training={"epochs": 1}), overwrite=True)
    assert not (run / "report.html").exists()


def test_a_foreign_report_stays(run: Path) -> None:
    (run / "report.html").write_text("mine")
    with pytest.raises(UserError, match=r"is not what bertcli wrote there.*--output FILE.html"):
        write_report([run], ReportOptions())
    assert (run / "report.html").read_text() == "mine"
    with pytest.raises(UserError, match=r"would overwrite report.html"):
        finetune(spam_config(run.parent), overwrite=True)


def test_a_folder_without_its_note_needs_another_place(run: Path, tmp_path: Path) -> None:
    (run / ".bertcli.json").unlink()
    with pytest.raises(UserError, match=r"has no .bertcli.json.*--output FILE.html"):
        write_report([run], ReportOptions())
    assert write_report([run], ReportOptions(), tmp_path / "r.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("name", "said"),
    [("r.txt", "give one of .html"), ("no/r.html", "there is no folder"), ("folder.html", "is a folder")],
)
def test_another_place_must_be_a_html_file(run: Path, tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(UserError, match=said):
        write_report([run], ReportOptions(), tmp_path / name)


def test_attributions_are_for_one_labeled_run(finetuned: Path, run: Path) -> None:
    with pytest.raises(UserError, match="--attributions: explains the mistakes of one fine-tuning run"):
        write_report([finetuned, run], ReportOptions(attributions=True))


def test_a_failure_at_the_end_of_a_run_is_one_line(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = checked(spam_config(run.parent, logging={"report": True}))
    write_report_if_asked(config)
    assert f"the report is in {run / 'report.html'}\n" in capsys.readouterr().err
    (run / "report.html").write_text("mine")
    write_report_if_asked(config)
    assert "warning: the report could not be written: " in capsys.readouterr().err

    def break_down(*_: object) -> str:
        raise RuntimeError("out of order")

    config = config.model_copy(update={"output_dir": shutil.move(run, run.with_name("my run"))})
    run = Path(config.output_dir)
    monkeypatch.setattr(write, "build_report", break_down)
    (run / "report.html").unlink()
    write_report_if_asked(config)
    said = "warning: the report could not be written: out of order; the model is saved. To try again: "
    assert capsys.readouterr().err == f"{said}bertcli report '{run}'\n"
