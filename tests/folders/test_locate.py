import shutil

import pytest

from bertcli.folders.locate import OnnxPlace, find_onnx, resolve_model
from bertcli.system.errors import UserError
from tests.folders.folders import saved_model


@pytest.fixture
def run(tmp_path):
    """A run with two checkpoints and its finished model."""
    folder = tmp_path / "run"
    saved_model(folder / "model")
    for step in ("step-00000900", "step-00010000"):
        shutil.copytree(folder / "model", folder / "checkpoints" / step / "model")
    (folder / "checkpoints" / ".step-99999999.partial").mkdir()
    (folder / "config.yaml").write_text("output_dir: run\n")
    return folder


def test_every_way_to_name_a_model(run):
    assert resolve_model(run) == run / "model"
    assert resolve_model(str(run / "model")) == run / "model"
    checkpoint = run / "checkpoints" / "step-00000900"
    assert resolve_model(checkpoint) == checkpoint / "model"
    assert resolve_model(checkpoint / "model") == checkpoint / "model"


def test_an_unfinished_run_is_its_newest_checkpoint(run):
    shutil.rmtree(run / "model")
    assert resolve_model(run) == run / "checkpoints" / "step-00010000" / "model"


def test_a_run_without_a_checkpoint_yet(run):
    shutil.rmtree(run / "model")
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(UserError, match="a run that has not saved a model yet"):
        resolve_model(run)


def test_a_path_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match=r"nowhere: no such folder\. MODEL is a run folder, a model folder"):
        resolve_model(tmp_path / "nowhere")


def test_a_file_instead_of_a_folder(run):
    with pytest.raises(UserError, match=r"config\.json: is a file\. MODEL is the folder that holds"):
        resolve_model(run / "model" / "config.json")


def test_a_folder_that_is_no_model_hears_all_that_is_missing(tmp_path):
    with pytest.raises(UserError) as caught:
        resolve_model(tmp_path)
    for part in (
        "config.json (the sizes)",
        "weights (one of model.safetensors,",
        "a vocabulary (one of tokenizer.json, vocab.txt, vocab.json",
    ):
        assert part in str(caught.value)


def test_a_model_without_weights(run):
    (run / "model" / "model.safetensors").unlink()
    with pytest.raises(
        UserError, match=r"model: not a complete model folder; missing: weights \(one of"
    ) as caught:
        resolve_model(run)
    assert "vocabulary (one of" not in str(caught.value)


def test_an_onnx_file_is_taken_where_it_is_named_or_there_are_no_weights(tmp_path):
    saved_model(tmp_path)
    (tmp_path / "onnx").mkdir()
    quantized = tmp_path / "onnx" / "model_quantized.onnx"
    quantized.touch()
    assert find_onnx(tmp_path) is None
    assert find_onnx(quantized) == OnnxPlace(quantized, tmp_path)
    (tmp_path / "model.safetensors").unlink()
    assert find_onnx(tmp_path) == OnnxPlace(quantized, tmp_path)
    (tmp_path / "onnx" / "model.onnx").touch()
    assert find_onnx(tmp_path) == OnnxPlace(tmp_path / "onnx" / "model.onnx", tmp_path)
    assert find_onnx(tmp_path / "onnx" / "none.onnx") is None
