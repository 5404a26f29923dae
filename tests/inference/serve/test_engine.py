"""The faster engine computes, and its file is kept; answers do not depend on what computes them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from bertcli.folders.onnx_graph import write_int8
from bertcli.inference.opened import Compute
from bertcli.inference.serve import engine
from bertcli.inference.serve.engine import Served, open_served
from bertcli.system.errors import UserError
from bertcli.tasks.examples import TextExample

CPU = Compute("cpu", "fp32")
TEXTS = ["the cat sat", "a dog", "it was dark of night and she sat in it"]


def answers(served: Served) -> list[dict[str, float]]:
    assert served.predictions is not None
    examples = [TextExample("", {}, (text,), label=None) for text in TEXTS]
    encoded = [served.predictions.encode(each) for each in examples]
    found = served.predictions.compute(encoded)
    return [dict(each.prediction.label_scores(raw=True)) for each in found]


def vectors(served: Served) -> torch.Tensor:
    assert served.vectors is not None
    return torch.stack(served.vectors.compute([served.vectors.encode(text) for text in TEXTS]))


def no_export(*arguments: Any) -> None:
    raise AssertionError("it was written before")


@pytest.fixture(scope="module")
def kept(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of files that are kept, with one model. The export takes some seconds."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder))
        open_served("m", folders / "multi-label", CPU, engine="onnxruntime")
    return folder


@pytest.fixture
def again(kept: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the model that is kept; nothing more is written."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept))
    monkeypatch.setattr(engine, "export_onnx", no_export)
    (found,) = (kept / "bertcli" / "onnx").iterdir()
    return found


@pytest.mark.parametrize("faster", ["bertcli", "onnxruntime"])
def test_the_engine_with_more_rows_a_second_computes(
    folders: Path, again: Path, monkeypatch: pytest.MonkeyPatch, faster: str
) -> None:
    measured = {"bertcli": [2.0, 3.0], "onnxruntime": [2.0, 3.0]} | {faster: [1.9, 3.4]}
    monkeypatch.setattr(engine, "_speeds", lambda engines: measured)
    served = open_served("m", folders / "multi-label", CPU, engine=None)
    assert served.engine == served.as_json()["engine"] == faster
    assert served.has_weights
    assert served.as_json()["rows_per_second"] == measured


def test_both_engines_are_measured_and_give_the_same_answers(folders: Path, again: Path) -> None:
    served = open_served("m", folders / "multi-label", CPU, engine=None)
    assert served.speeds.keys() == {"bertcli", "onnxruntime"}
    assert all(speed > 0 for each in served.speeds.values() for speed in each)
    one, other = (
        open_served("m", folders / "multi-label", CPU, engine=name) for name in ("bertcli", "onnxruntime")
    )
    for first, second in zip(answers(one), answers(other), strict=True):
        assert first == pytest.approx(second, abs=1e-5)


def test_a_folder_of_onnx_is_computed_by_onnxruntime(folders: Path, again: Path) -> None:
    served = open_served("m", again, CPU, engine=None)
    assert (served.engine, served.speeds, served.has_weights) == ("onnxruntime", {}, False)
    with pytest.raises(UserError, match=r"--engine bertcli: .* is an ONNX file, which onnxruntime runs"):
        open_served("m", again, CPU, engine="bertcli")


def test_texts_share_no_batch_where_activations_are_rounded_together(again: Path, tmp_path: Path) -> None:
    plain = open_served("m", again, CPU, engine=None)
    rounded = again / "onnx" / "rounded.onnx"
    write_int8(again / "onnx" / "model.onnx", rounded)
    try:
        served = open_served("m", rounded, CPU, engine=None)
    finally:
        rounded.unlink()
    assert plain.predictions is not None
    assert served.predictions is not None
    assert (plain.predictions.together, served.predictions.together) == (True, False)


def test_another_model_in_the_same_folder_is_written_anew(
    folders: Path, again: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, said = folders / "multi-label", list[str]()
    monkeypatch.setattr(engine, "say", said.append)
    (folder / "other.txt").write_text("a file more")
    try:
        assert open_served("m", folder, CPU, engine=None).engine == "bertcli"
    finally:
        (folder / "other.txt").unlink()
    assert "this is done once" in said[0]
    assert said[1].endswith("since it cannot be written as ONNX: it was written before")


def test_an_engine_that_is_asked_for_is_taken_or_the_server_does_not_start(
    folders: Path, again: Path
) -> None:
    with pytest.raises(UserError, match=r"--engine onnxruntime: .* cannot be written as ONNX: it was"):
        open_served("m", folders / "vectors", CPU, engine="onnxruntime")


def test_of_two_servers_that_write_it_at_once_both_take_what_the_first_wrote(
    folders: Path, again: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def too_late(source: Any, place: Path, *others: Any) -> None:
        shutil.copytree(again, place)
        raise UserError(f"{place}: exists already")

    monkeypatch.setattr(engine, "export_onnx", too_late)
    assert open_served("m", folders / "multi-label", CPU, engine="onnxruntime").engine == "onnxruntime"


def test_an_older_export_of_the_same_model_is_removed(
    folders: Path, again: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(engine, "export_onnx", lambda source, place, *others: shutil.copytree(again, place))
    for version in ("1", "2"):
        monkeypatch.setattr(engine, "version", lambda package, version=version: version)
        open_served("m", folders / "multi-label", CPU, engine="onnxruntime")
        open_served("v", folders / "vectors", CPU, engine="bertcli")
    (kept,) = (tmp_path / "bertcli" / "onnx").iterdir()
    assert kept != again


def test_onnxruntime_reports_to_nobody(again: Path) -> None:
    open_served("m", again, CPU, engine=None)
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"


def test_another_version_of_bertcli_writes_it_anew(
    folders: Path, again: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "version", lambda package: f"of another {package}")
    assert open_served("m", folders / "multi-label", CPU, engine=None).engine == "bertcli"


def test_vectors_are_pooled_as_the_folder_says_now(
    folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = shutil.copytree(folders / "vectors", tmp_path / "vectors")
    vectors(open_served("m", folder, CPU, engine="onnxruntime"))
    pooling = folder / "1_Pooling" / "config.json"
    modes = {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}
    pooling.write_text(json.dumps(json.loads(pooling.read_text()) | modes))
    one, other = (vectors(open_served("m", folder, CPU, engine=name)) for name in ("bertcli", "onnxruntime"))
    assert torch.allclose(one, other, atol=1e-5)


def test_without_the_packages_bertcli_computes(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "find_spec", lambda name: None)
    assert open_served("m", folders / "multi-label", CPU, engine=None).engine == "bertcli"
    with pytest.raises(UserError, match=r"onnx is not installed: pip install 'bertcli\[onnx\]'"):
        open_served("m", folders / "multi-label", CPU, engine="onnxruntime")


def test_masks_are_filled_by_bertcli_alone(folders: Path) -> None:
    served = open_served("m", folders / "words", CPU, engine=None)
    assert (served.engine, served.speeds) == ("bertcli", {})
    with pytest.raises(UserError, match=r"--engine onnxruntime: .* fills masks, which bertcli computes"):
        open_served("m", folders / "words", CPU, engine="onnxruntime")


def test_sixteen_bits_are_computed_by_bertcli(folders: Path) -> None:
    narrow = Compute("cpu", "bf16")
    assert open_served("m", folders / "multi-label", narrow, engine=None).engine == "bertcli"
    with pytest.raises(UserError, match="the model computes on cpu in bf16; onnxruntime on the CPU in fp32"):
        open_served("m", folders / "multi-label", narrow, engine="onnxruntime")
