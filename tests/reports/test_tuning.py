"""The result of a search: is the gain more than the noise of seeds, what mattered, and the config."""

from __future__ import annotations

import math
from typing import Any

import pytest
import yaml

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config
from bertcli.reports.tuning import Trial, Tuning

RATE, POOLING = "training.learning_rate", "task.pooling"


def trial(number: int, score: float | None, fresh: Any = (), rate: float = 1e-4, **more: Any) -> Trial:
    values = {RATE: rate, POOLING: "mean"}
    changed = {RATE: rate} if rate != 1e-4 else {}
    return Trial(
        number, score, more.get("pruned", False), values=values, changed=changed, seconds=9.0, fresh=fresh
    )


def tuning(*trials: Trial, best: int = 1, metric: str = "accuracy") -> Tuning:
    given = {RATE: 1e-4, POOLING: "mean"}
    return Tuning(metric, f"{metric} <of> all", trials, best=best, given=given, seconds=100.0)


CLEAR = tuning(trial(0, 0.50, [0.52, 0.48]), trial(1, 0.90, [0.60, 0.62], rate=2e-4))
NOISE = tuning(trial(0, 0.50, [0.60, 0.40]), trial(1, 0.90, [0.52, 0.54], rate=2e-4))


def test_the_gain_is_that_of_the_means_of_unselected_runs() -> None:
    assert CLEAR.gain == pytest.approx(0.61 - 0.50)  # the 0.90 was selected for being high
    variance = (2 * 0.02**2 + 1 * 0.0002) / 3  # pooled over both configs
    assert CLEAR.noise == pytest.approx(math.sqrt(variance))
    assert CLEAR.recommended == 1
    assert "The gain of 0.110 is more than seeds differ (0.0183)" in CLEAR.verdict


def test_a_gain_within_the_noise_recommends_the_given_config() -> None:
    assert NOISE.gain == pytest.approx(0.03)
    assert NOISE.recommended == 0
    assert "0.0300 is not more than seeds differ (0.0821): keep the given config" in NOISE.verdict


def test_a_lower_loss_is_a_gain() -> None:
    found = tuning(trial(0, 0.50, [0.52, 0.48]), trial(1, 0.1, [0.30, 0.32]), metric="loss")
    assert found.gain == pytest.approx(0.19)
    assert found.recommended == 1


def test_without_fresh_seeds_the_given_config_is_kept() -> None:
    found = tuning(trial(0, 0.50), trial(1, 0.90, [0.8]))
    assert (found.gain, found.noise, found.recommended) == (None, None, 0)
    assert "no time for fresh seeds, so the gain may be chance: keep the given config" in found.verdict


def test_with_one_trial_nothing_was_searched() -> None:
    found = tuning(trial(0, 0.50), best=0)
    assert found.verdict == "there was time for the given config alone, which took 9 s: give more --minutes"


def test_the_given_config_may_be_the_best() -> None:
    found = tuning(trial(0, 0.50, [0.5]), trial(1, 0.40), best=0)
    assert (found.gain, found.recommended) == (None, 0)
    assert "keep the given config" in found.verdict


def test_a_run_that_diverged_with_a_fresh_seed_is_no_recommendation() -> None:
    found = tuning(trial(0, 0.50, [0.52, 0.48]), trial(1, 0.90, [-math.inf, 0.9], rate=2e-4))
    assert found.recommended == 0
    assert found.as_json()["trials"][1]["fresh"] == [None, 0.9]


def test_what_mattered_is_a_correlation_of_ranks() -> None:
    rates = [1e-4, 2e-4, 3e-4, 9e-4]
    rising = tuning(*(trial(i, 0.1 * i, rate=rate) for i, rate in enumerate(rates)), best=3)
    assert rising.influence == {RATE: pytest.approx(1.0), POOLING: None}
    loss = tuning(*(trial(i, 0.1 * i, rate=rate) for i, rate in enumerate(rates)), best=0, metric="loss")
    assert loss.influence[RATE] == pytest.approx(-1.0)
    few = tuning(*(trial(i, 0.1 * i, rate=rate) for i, rate in enumerate(rates[:3])), best=2)
    assert few.influence[RATE] is None


def given(**training: Any) -> FinetuneConfig:
    columns = {"text": "t", "label": "l", "class_weights": {"x: y": 2.0, "z": 1.0}}
    task = {"type": "classification", "train": "a.tsv", "dev": "b.tsv", **columns}
    config = {"output_dir": "o", "model": "m", "task": task, "training": training}
    return check_config(FinetuneConfig, config, "test")


def test_the_config_says_what_changed_beside_each_key() -> None:
    text = CLEAR.config_text(given(epochs=2.0))
    assert "learning_rate: 0.0002    # in the given config 0.0001" in text
    assert text.startswith("# with fresh seeds trial 1 has")
    again = check_config(FinetuneConfig, yaml.safe_load(text), "test")
    assert again == given(epochs=2.0, learning_rate=2e-4)
    assert again.training.model_fields_set == {"epochs", "learning_rate"}


def test_the_config_within_the_noise_is_the_given_one() -> None:
    config = check_config(FinetuneConfig, yaml.safe_load(NOISE.config_text(given())), "test")
    assert config == given()


def test_the_page_shows_trials_seeds_and_what_mattered() -> None:
    found = tuning(
        trial(0, 0.50, [0.52, 0.48]),
        trial(1, 0.90, [0.60, 0.62], rate=2e-4),
        trial(2, 0.2, pruned=True),
        trial(3, None, rate=3e-4),
    )
    text = found.page("runs/x<y")
    assert "runs/x&lt;y" in text
    assert "accuracy &lt;of&gt; all" in text
    assert "The gain of 0.110 is more than seeds differ" in text
    assert "<strong>0.0002</strong>" in text
    assert "pruned" in text
    assert "diverged" in text
    assert "0.600, 0.620" in text


def test_the_page_says_why_there_is_no_comparison() -> None:
    assert "no time for runs with fresh seeds" in tuning(trial(0, 0.5), trial(1, 0.9)).page("a")
    assert "no trial was better" in tuning(trial(0, 0.5), trial(1, 0.4), best=0).page("a")
