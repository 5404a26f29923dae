"""Batch size and mask rate that move over the steps: pure functions of the step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bertcli.batches.share import num_steps
from bertcli.config.load import check_config, load_config
from bertcli.config.schema import PretrainConfig
from bertcli.system.errors import UserError
from bertcli.training.pretraining import pretrain
from tests.small_runs import losses, read_rows, small_config


def run(corpus: Path, folder: Path, steps: int, resume: bool = False, **training: Any) -> Path:
    usual = {"steps": steps, "schedule": "constant", "batch_size": [4, 16], "micro_batch_size": 4}
    config = small_config(corpus, folder, training=usual | training, evaluation={"every_steps": 100})
    config["data"] |= {"mask_rate": [0.5, 0.1]}
    config["checkpoint"] = {"every_steps": 5, "keep_last": 9}
    pretrain(check_config(PretrainConfig, config, "the test"), resume=resume, overwrite=False)
    return folder


def test_tokens_of_a_step_follow_the_ramp(corpus: Path, tmp_path: Path) -> None:
    rows = read_rows(run(corpus, tmp_path / "run", 10) / "metrics.jsonl", "train")
    tokens = [row["tokens"] for row in rows]
    assert (tokens[-1] - tokens[-2]) / tokens[0] == pytest.approx(4, rel=0.3)


def test_more_steps_leave_the_ramp_as_it_was(corpus: Path, tmp_path: Path) -> None:
    longer = run(corpus, tmp_path / "longer", 8)
    run(corpus, longer, 12, resume=True)
    assert load_config(PretrainConfig, longer / "config.yaml").training.ramp_steps == 8
    straight = run(corpus, tmp_path / "straight", 12, ramp_steps=8)
    ours, theirs = (
        [each for each in losses(folder / "metrics.jsonl") if each[1] == "train"]
        for folder in (longer, straight)
    )
    assert ours == theirs
    weights = "model/model.safetensors"
    assert (longer / weights).read_bytes() == (straight / weights).read_bytes()


def test_a_resume_with_another_ramp_is_refused(corpus: Path, tmp_path: Path) -> None:
    run(corpus, tmp_path / "run", 6)
    with pytest.raises(UserError, match=r"training.ramp_steps: 6 in the run, 3 now"):
        run(corpus, tmp_path / "run", 8, resume=True, ramp_steps=3)


def test_a_resume_counts_the_epochs_of_a_falling_ramp_as_before(corpus: Path, tmp_path: Path) -> None:
    from bertcli.corpus.build import prepare_store
    from bertcli.training.recipe import decide_recipe

    config = small_config(corpus, tmp_path / "run", training={"epochs": 1, "batch_size": [16, 4]})
    config["training"].pop("steps", None)
    decided = decide_recipe(check_config(PretrainConfig, config, "the test"), lambda line: None)
    frame = prepare_store(decided, lambda line: None).tokenizer.frame
    for num_tokens in range(20_000, 20_400):
        steps = num_steps(decided, frame, num_tokens)
        training = decided.training.model_copy(update={"ramp_steps": steps})
        assert num_steps(decided.model_copy(update={"training": training}), frame, num_tokens) == steps


def test_epochs_count_the_rows_of_a_ramp(corpus: Path, tmp_path: Path) -> None:
    from bertcli.batches.stream import training_stream
    from bertcli.corpus.build import prepare_store
    from bertcli.training.recipe import decide_recipe

    config = small_config(corpus, tmp_path / "run", training={"epochs": 2, "batch_size": [4, 16]})
    config["training"].pop("steps", None)
    decided = decide_recipe(check_config(PretrainConfig, config, "the test"), lambda line: None)
    store = prepare_store(decided, lambda line: None)
    steps = num_steps(decided, store.tokenizer.frame, store.train.num_tokens)
    stream = training_stream(decided, store)
    assert stream.tokens_until(steps) >= 2 * store.train.num_tokens > stream.tokens_until(steps - 1)
    assert (stream.sizes.of(0), stream.sizes.of(steps - 1)) == (4, 16)
