"""A student that learns from a teacher: its losses, an exact resume, what cannot be."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
import transformers
from safetensors.torch import load_file, save_file

from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.system.errors import UserError
from bertcli.training.pretraining import pretrain
from tests.small_runs import read_rows, run_cli, small_config, start_and_signal, write_config

SIZES = {"layers": 2, "hidden": 32, "heads": 4, "feed_forward": 64, "max_positions": 40, "dropout": 0.1}


@pytest.fixture(scope="module")
def teacher(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of BERT."""
    folder = tmp_path_factory.mktemp("teacher")
    config = small_config(corpus, folder / "run", model=SIZES)
    config["tokenizer"] = {"vocab_size": 400}
    pretrain(check_config(PretrainConfig, config, "the test"), resume=False, overwrite=False)
    return folder / "run"


def distilled(corpus: Path, folder: Path, teacher: Path, **sections: Any) -> dict[str, Any]:
    config = small_config(corpus, folder / "run", model={"family": "distilbert", **SIZES, "layers": 1})
    config["corpus"]["store"] = str(folder / "store")
    config["tokenizer"] = {}
    del config["data"]["objective"], config["data"]["mask_split"]
    return config | {"distillation": {"teacher": str(teacher)}} | sections


def test_a_student_learns_from_a_teacher(corpus: Path, teacher: Path, tmp_path: Path) -> None:
    config = distilled(corpus, tmp_path, teacher)
    pretrain(check_config(PretrainConfig, config, "the test"), resume=False, overwrite=False)
    first, *_, last = read_rows(tmp_path / "run" / "metrics.jsonl", "train")
    assert first["loss"] == pytest.approx(
        5 * first["kl_loss"] + 2 * first["mlm_loss"] + first["cosine_loss"], rel=1e-6
    )
    card = (tmp_path / "run" / "model" / "README.md").read_text()
    assert "| weights | its words 5, true words 2, hidden states 1 |" in card
    assert last["cosine_loss"] < first["cosine_loss"]
    loaded: Any = transformers.DistilBertForMaskedLM.from_pretrained(
        tmp_path / "run" / "model", output_loading_info=True
    )
    assert not any(loaded[1][kind] for kind in ("missing_keys", "mismatched_keys", "unexpected_keys"))


def test_a_killed_student_ends_as_an_undisturbed_one(corpus: Path, teacher: Path, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    whole = distilled(corpus, tmp_path / "one", teacher)
    pretrain(check_config(PretrainConfig, whole, "the test"), resume=False, overwrite=False)
    config = write_config(tmp_path / "config.yaml", distilled(corpus, tmp_path, teacher))
    assert start_and_signal("pretrain", config, tmp_path / "run", 7, signal.SIGKILL) == -signal.SIGKILL
    result = run_cli("pretrain", config, "--resume")
    assert result.returncode == 0, result.stderr
    resumed, undisturbed = (folder / "run/model/model.safetensors" for folder in (tmp_path, tmp_path / "one"))
    assert resumed.read_bytes() == undisturbed.read_bytes()


def test_a_resume_with_another_teacher_is_refused(corpus: Path, teacher: Path, tmp_path: Path) -> None:
    changing = tmp_path / "teacher"
    shutil.copytree(teacher / "model", changing)
    config = distilled(corpus, tmp_path, changing)
    pretrain(check_config(PretrainConfig, config, "the test"), resume=False, overwrite=False)
    weights = load_file(changing / "model.safetensors")
    name = next(iter(weights))
    save_file(weights | {name: weights[name] + 1}, changing / "model.safetensors", {"format": "pt"})
    config["training"]["steps"] += 1
    with pytest.raises(UserError, match=r"cannot resume: .* changed since the start of the run"):
        pretrain(check_config(PretrainConfig, config, "the test"), resume=True, overwrite=False)


def test_true_words_may_count_nothing(corpus: Path, teacher: Path, tmp_path: Path) -> None:
    """They are measured all the same, for the verdict."""
    config = distilled(corpus, tmp_path, teacher)
    config["distillation"]["weights"] = [5.0, 0.0, 0.0]
    pretrain(check_config(PretrainConfig, config, "the test"), resume=False, overwrite=False)
    (row, *_) = read_rows(tmp_path / "run" / "metrics.jsonl", "heldout")
    assert "mlm_loss" in row
    assert "cosine_loss" not in row
    card = (tmp_path / "run" / "model" / "README.md").read_text()
    assert "layers of its teacher" in card


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"model": {"family": "electra", **SIZES}}, "whose model predicts no words"),
        ({"model": {"family": "distilbert", **SIZES, "hidden": 16}}, "the student has 16 features"),
        ({"tokenizer": {"path": "vocab.txt"}}, "the student has its teacher's tokenizer"),
        ({"distillation": {"teacher": "x", "weights": [0, 0, 0]}}, "all are 0"),
        ({"tokenizer": {"kind": "byte-bpe", "vocab_size": 500}}, r"vocab_size: 500; the folder has 400"),
        ({"tokenizer": {"kind": "byte-bpe"}}, r"tokenizer.kind: byte-bpe; the folder has wordpiece"),
        ({"data": {"max_length": 64}, "model": {**SIZES, "max_positions": 64}}, r"teacher reads \(40\)"),
    ],
)
def test_a_distillation_that_cannot_be_is_refused(
    corpus: Path, teacher: Path, tmp_path: Path, sections: dict[str, Any], says: str
) -> None:
    config = distilled(corpus, tmp_path, teacher, **sections)
    with pytest.raises(UserError, match=says):
        pretrain(check_config(PretrainConfig, config, "the test"), resume=False, overwrite=False)
