"""A run that learned nothing does not end without a word, and a good one says by how much."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.model.architecture import Architecture
from bertcli.objectives.base import Reference
from bertcli.reports.pretraining_verdict import verdict
from bertcli.system.errors import UserError
from bertcli.training.pretraining import pretrain
from bertcli.training.scores import Scores
from tests.decided import recipe
from tests.small_runs import read_rows, small_config

SIZES = Architecture(2048, 128, layers=2, heads=2, feed_forward=512, max_positions=128)
RECIPE = {"batch_size": 32, "learning_rate": 1.5e-3, "warmup_steps": 160, "steps": 2000}
CONFIG = recipe({"output_dir": "run", "corpus": {"files": ["classics"]}})
REFERENCES = [Reference("mlm", first_loss=7.6, chance_loss=7.015, line="", predicts_words=True)]


def weigh(mlm: float | None, **sections: Any) -> str:
    value = {
        "output_dir": "run",
        "corpus": {"files": ["classics"]},
        "data": {"objective": "mlm+nsp", "mask_rate": 0.4} | sections.pop("data", {}),
        "training": RECIPE | sections.pop("training", {}),
    }
    scores = None if mlm is None else Scores({"mlm": mlm}, {"mlm": 0.3}, 1000)
    return verdict(scores, REFERENCES, recipe(value), SIZES)


def test_a_good_run_says_by_how_much() -> None:
    assert "3.522 is 3.49 nats better than word frequencies alone (7.015)" in weigh(3.522)
    assert "32.9 times as likely" in weigh(3.522)


@pytest.mark.parametrize(
    ("mlm", "words"),
    [
        (7.292, "0.28 nats worse than"),
        (7.0, "no better than"),
        (585.0, "577.99 nats worse"),
        (math.nan, "not a number"),
    ],
)
def test_a_run_that_learned_nothing_says_so(mlm: float, words: str) -> None:
    assert words in weigh(mlm)
    assert "learned nothing from context. To change: take more text" in weigh(mlm)


def test_it_names_what_to_change() -> None:
    assert "training.learning_rate is 5, auto takes 0.004" in weigh(585.0, training={"learning_rate": 5})
    assert "training.steps is 10, and a new model takes up to 200" in weigh(7.0, training={"steps": 10})


NSP = Reference("nsp", first_loss=0.693, chance_loss=0.693, line="", chance_accuracy=0.5)


@pytest.mark.parametrize(("accuracy", "said"), [(0.502, True), (0.48, True), (0.71, False)])
def test_pairs_at_chance_are_told(accuracy: float, said: bool) -> None:
    scores = Scores({"mlm": 3.5, "nsp": 0.69}, {"mlm": 0.3, "nsp": accuracy}, 1000)
    told = verdict(scores, [*REFERENCES, NSP], CONFIG, SIZES)
    assert told.startswith("verdict: held-out mlm 3.500 is")
    assert ("Held-out nsp is at chance" in told) is said


@pytest.mark.parametrize(("last", "said"), [(5.21, True), (5.13, False), (5.0, False)])
def test_a_run_that_became_worse_is_told(last: float, said: bool) -> None:
    rows = [
        {"step": step, "mlm_loss": loss} for step, loss in ((100, 6.0), (200, 5.12), (300, None), (400, last))
    ]
    told = verdict(Scores({"mlm": last}, {"mlm": 0.3}, 1000), REFERENCES, CONFIG, SIZES, rows)
    assert ("held-out mlm was 5.120 at step 200, and is 5.210 now" in told) is said


def test_nothing_held_out_is_no_verdict() -> None:
    assert "verdict: none" in weigh(None)


def test_the_log_and_the_card_say_it(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    value = small_config(corpus, tmp_path / "run", training={"learning_rate": 5.0})
    model, _ = pretrain(check_config(PretrainConfig, value, "test"), resume=False, overwrite=False)
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("verdict: ")]
    assert "the model learned nothing from context" in said[0]
    assert "training.learning_rate is 5, auto takes" in said[0]
    assert "the model learned nothing from context" in (model / "README.md").read_text()


def test_the_best_model_is_kept_and_a_resume_keeps_the_same(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(folder: Path, resume: bool = False) -> bytes:
        value = small_config(
            corpus,
            folder,
            training={"learning_rate": 0.3, "steps": 9, "warmup_steps": 0},
            evaluation={"every_steps": 1},
            checkpoint={"every_steps": 1, "keep_last": 9, "keep_best": True},
        )
        model, _ = pretrain(check_config(PretrainConfig, value, "test"), resume=resume, overwrite=False)
        return (model / "model.safetensors").read_bytes()

    kept = run(tmp_path / "run")
    rows = read_rows(tmp_path / "run" / "metrics.jsonl", "heldout")
    best = min(rows, key=lambda row: row["loss"])["step"]
    assert best < 9
    checkpoint = tmp_path / "run" / "checkpoints" / f"step-{best:08d}" / "model" / "model.safetensors"
    assert kept == checkpoint.read_bytes()
    assert f"the model is the best by held-out loss: that of step {best}" in capsys.readouterr().err
    for lost in ("step-00000009", "best"):
        shutil.rmtree(tmp_path / "run" / "checkpoints" / lost)
        shutil.rmtree(tmp_path / "run" / "model")  # a finished run is not trained again
        assert run(tmp_path / "run", resume=True) == kept
    training = {"learning_rate": 0.3, "steps": 9, "warmup_steps": 0}
    changed = check_config(PretrainConfig, small_config(corpus, tmp_path / "run", training=training), "test")
    with pytest.raises(UserError, match="keep_best: True in the run, False now"):
        pretrain(changed, resume=True, overwrite=False)
    decay = check_config(
        PretrainConfig,
        small_config(
            corpus,
            tmp_path / "new",
            training=training | {"schedule": "stable-decay"},
            checkpoint={"keep_best": True},
        ),
        "test",
    )
    with pytest.raises(UserError, match="keep_best: true is not possible with"):
        pretrain(decay, resume=False, overwrite=False)
