"""What may be done with a run folder that is in use."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.system.errors import UserError
from bertcli.training.pretraining import pretrain
from tests.small_runs import read_rows, small_config


def config(corpus: Path, run: Path, steps: int = 3, **sections: Any) -> PretrainConfig:
    training = {"steps": steps} | sections.pop("training", {})
    value = small_config(corpus, run, training=training, **sections)
    return check_config(PretrainConfig, value, "test")


def test_more_steps_go_on_and_a_finished_run_says_so(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    pretrain(config(corpus, run), resume=False, overwrite=False)
    capsys.readouterr()
    pretrain(config(corpus, run), resume=True, overwrite=False)
    assert "is finished: 3 of 3 steps" in capsys.readouterr().err
    shutil.rmtree(run / "model")  # as if killed just before it was written
    pretrain(config(corpus, run), resume=True, overwrite=False)
    assert (run / "model" / "model.safetensors").exists()
    pretrain(config(corpus, run, steps=5), resume=True, overwrite=False)
    assert "training.steps changes from 3 to 5" in capsys.readouterr().err
    assert [row["step"] for row in read_rows(run / "metrics.jsonl", "train")] == [1, 2, 3, 4, 5]


def test_a_changed_config_is_refused_and_all_of_it_listed(corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    pretrain(config(corpus, run), resume=False, overwrite=False)
    before = (run / "config.yaml").read_bytes()
    changed = config(corpus, run, steps=2, training={"learning_rate": 0.01}, data={"mask_rate": 0.2})
    with pytest.raises(UserError, match="cannot resume") as error:
        pretrain(changed, resume=True, overwrite=False)
    assert "training.learning_rate: 0.001 in the run, 0.01 now" in str(error.value)
    assert "data.mask_rate: 0.15 in the run, 0.2 now" in str(error.value)
    assert "training.steps: 3 in the run, 2 now" in str(error.value)  # only upward
    assert (run / "config.yaml").read_bytes() == before


def test_logging_evaluation_checkpoints_and_workers_may_change(corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    pretrain(config(corpus, run), resume=False, overwrite=False)
    harmless = config(
        corpus,
        run,
        steps=4,
        logging={"every_steps": 2},
        evaluation={"every_steps": 1},
        checkpoint={"every_steps": 1},
        data={"workers": 1},
    )
    pretrain(harmless, resume=True, overwrite=False)
    assert read_rows(run / "metrics.jsonl")[-1]["step"] == 4


def test_evaluations_that_choose_the_model_may_not_change(corpus: Path, tmp_path: Path) -> None:
    keys: dict[str, Any] = {"checkpoint": {"keep_best": True}}
    pretrain(config(corpus, tmp_path / "run", **keys), resume=False, overwrite=False)
    other = config(corpus, tmp_path / "run", steps=4, evaluation={"batches": 3}, **keys)
    with pytest.raises(UserError, match=r"evaluation\.batches: \d+ in the run, 3 now"):
        pretrain(other, resume=True, overwrite=False)


def test_a_moved_run_goes_on(corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pretrain(config(corpus, tmp_path / "run"), resume=False, overwrite=False)
    (tmp_path / "run").rename(tmp_path / "moved")
    pretrain(config(corpus, tmp_path / "moved", steps=4), resume=True, overwrite=False)
    assert read_rows(tmp_path / "moved" / "metrics.jsonl")[-1]["step"] == 4
    assert (
        f"resume: output_dir changes from {tmp_path / 'run'} to {tmp_path / 'moved'}"
        in capsys.readouterr().err
    )


def test_a_resume_keeps_what_auto_decided(corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    pretrain(config(corpus, run, training={"micro_batch_size": 2}), resume=False, overwrite=False)
    auto = config(corpus, run, steps=4, training={"micro_batch_size": "auto", "precision": "auto"})
    pretrain(auto, resume=True, overwrite=False)
    assert "micro_batch_size: 2" in (run / "config.yaml").read_text()


def test_a_run_is_never_overwritten_unasked(corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    pretrain(config(corpus, run), resume=False, overwrite=False)
    with pytest.raises(UserError, match="already has a run: --resume continues it, --overwrite deletes it"):
        pretrain(config(corpus, run), resume=False, overwrite=False)
    (run / "mine.txt").write_text("notes")
    pretrain(config(corpus, run, steps=2), resume=False, overwrite=True)
    assert (run / "mine.txt").read_text() == "notes"
    assert read_rows(run / "metrics.jsonl")[-1]["step"] == 2
    with pytest.raises(UserError, match="give --resume or --overwrite, not both"):
        pretrain(config(corpus, run), resume=True, overwrite=True)


def test_what_is_overwritten_stays_until_the_new_run_can_begin(corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    pretrain(config(corpus, run), resume=False, overwrite=False)
    weights = (run / "model" / "model.safetensors").read_bytes()
    with pytest.raises(UserError, match="the store was built from something else"):
        pretrain(config(corpus, run, tokenizer={"vocab_size": 401}), resume=False, overwrite=True)
    assert (run / "model" / "model.safetensors").read_bytes() == weights
    pretrain(config(corpus, run), resume=True, overwrite=False)


@pytest.mark.parametrize("begun_from", ["run", "run/model", "run/checkpoints/step-00000003"])
def test_a_run_does_not_overwrite_the_model_it_begins_from(
    begun_from: str, corpus: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    pretrain(config(corpus, run), resume=False, overwrite=False)
    own = config(corpus, run, model={"init_from": str(tmp_path / begun_from)})
    with pytest.raises(UserError, match=r"would delete .*, which is read because of model.init_from"):
        pretrain(own, resume=False, overwrite=True)
    assert (run / "model" / "model.safetensors").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_an_error(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(UserError, match="permission denied; choose an output_dir that can be written"):
        pretrain(config(corpus, tmp_path / "closed" / "run"), resume=False, overwrite=False)


def test_an_output_dir_that_is_a_file_is_an_error(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="choose an output_dir that can be written"):
        pretrain(config(corpus, tmp_path / "file" / "run"), resume=False, overwrite=False)
