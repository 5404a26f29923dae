import shutil

from bertcli.folders.locate import resolve_model
from tests.folders.tf_values import TF_CHECKPOINT


def test_a_checkpoint_becomes_a_model_that_predicts(run_bertcli, tmp_path):
    code, out, err = run_bertcli("convert", TF_CHECKPOINT, tmp_path / "bert")
    assert code == 0
    assert out == f"{tmp_path / 'bert'}: 46 tensors; largest difference 0\n"
    assert err.splitlines()[0].startswith("state of its training: bert/embeddings/LayerNorm/gamma/adam_m, ")
    assert err.splitlines()[1] == "tokenizer: uncased"
    assert resolve_model(tmp_path / "bert") == tmp_path / "bert"
    assert run_bertcli("predict-mask", tmp_path / "bert", "the [MASK] sat")[0] == 0


def test_case_may_be_given(run_bertcli, tmp_path):
    assert "tokenizer: cased" in run_bertcli("convert", TF_CHECKPOINT, tmp_path / "bert", "--cased")[2]


def test_a_run_is_its_model(run_bertcli, model, tmp_path):
    code, out, _ = run_bertcli("convert", model, tmp_path / "copy")
    assert code == 0
    assert out.endswith("largest difference 0\n")


def test_bad_input_exits_2_with_its_message_alone(run_bertcli, model, tmp_path):
    code, out, err = run_bertcli("convert", model, model)
    assert (code, out) == (2, "")
    assert err == f"error: {model}: exists already; name a new folder, or an empty one\n"
    code, _, err = run_bertcli("convert", tmp_path / "nowhere", tmp_path / "bert")
    assert code == 2
    assert err.startswith(f"error: {tmp_path / 'nowhere'}: no such folder.")
    shutil.copytree(TF_CHECKPOINT, tmp_path / "tf")
    (tmp_path / "tf" / "vocab.txt").unlink()
    code, _, err = run_bertcli("convert", tmp_path / "tf", tmp_path / "bert")
    assert code == 2
    assert "vocab.txt is missing beside the checkpoint" in err
