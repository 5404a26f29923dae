"""What `bertcli export` refuses before it writes anything."""

from __future__ import annotations

import sys

import pytest

from bertcli.folders.onnx_source import MOST_BYTES
from tests.folders.folders import saved_model, saved_task


@pytest.mark.parametrize("package", ["onnx", "onnxscript", "onnxruntime"])
def test_without_the_exporters_packages_nothing_is_begun(run_bertcli, tmp_path, monkeypatch, package) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    saved_task(tmp_path / "model", "classification")
    code, out, err = run_bertcli("export", tmp_path / "model", tmp_path / "out")
    assert (code, out) == (2, "")
    reason = f"an ONNX file is made by {package}, and {package} is not installed"
    assert err == f"error: {reason}; exporting needs: pip install 'bertcli[onnx]'\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sample", "rows.tsv"], "--sample and --text say what --int8 is compared on; give --int8 too"),
        (["--int8", "--sample", "none.tsv"], "none.tsv: no such file"),
        (["--int8", "--text", "one"], "--text names a column of --sample FILE; give that too"),
    ],
)
def test_bad_input_exits_2_with_its_message_alone(run_bertcli, tmp_path, options, message) -> None:
    saved_task(tmp_path / "model", "classification")
    code, out, err = run_bertcli("export", tmp_path / "model", tmp_path / "out", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_holds_something_is_left_alone(run_bertcli, tmp_path) -> None:
    saved_model(tmp_path / "model")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    code, _, err = run_bertcli("export", tmp_path / "model", tmp_path / "out")
    assert (code, err) == (
        2,
        f"error: {tmp_path / 'out'}: exists already; name a new folder, or an empty one\n",
    )
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_weights_that_one_file_cannot_hold_are_refused(run_bertcli, tmp_path, monkeypatch) -> None:
    saved_model(tmp_path / "model")
    monkeypatch.setattr("bertcli.folders.onnx_source.weight_bytes", lambda model: MOST_BYTES + 1)
    code, _, err = run_bertcli("export", tmp_path / "model", tmp_path / "out")
    assert code == 2
    assert "its weights take 2.0 GB, and an ONNX file holds at most 2 GB" in err
