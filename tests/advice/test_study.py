"""The trials of a search: what may change, which values they have, and which are pruned."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bertcli.advice.study import EPOCHS, RATE, ROWS, Study, rounded, search_space, tenths
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config
from bertcli.model.task_models import VectorModel

optuna = pytest.importorskip("optuna")


def config(type: str = "classification", **task: Any) -> FinetuneConfig:
    columns = {"label": "label", "text": "text"} if type == "classification" else {"text": ["a", "b"]}
    section = {"type": type, "train": "t.tsv", "dev": "d.tsv", "max_length": 64, **columns, **task}
    return check_config(FinetuneConfig, {"output_dir": "o", "model": "m", "task": section}, "test")


def plan(
    given: FinetuneConfig, length: int = 30, layers: int = 6, groups: int | None = None, model: Any = None
) -> Any:
    training = SimpleNamespace(learning_rate=1e-4)
    sizes = SimpleNamespace(layers=layers, layer_groups=groups, usable_positions=100)
    return SimpleNamespace(training=training, architecture=sizes, length=length, build=lambda: model)


def space_of(given: FinetuneConfig, **changes: Any) -> dict[str, tuple[Any, Any]]:
    return dict(search_space(optuna, given, plan(given, **changes)))


def study(folder: Path, seed: int = 1) -> Study:
    return Study(optuna, folder / "trials.jsonl", space_of(config()), seed)


def new(of: Study, epochs: float = 9.0) -> Any:
    trial = of.ask(epochs)
    of.fill(trial, epochs)
    return trial


def ended(of: Study, score: float | None, seconds: float = 30.0, epochs: float = 3.0) -> Any:
    trial = new(of)
    trial.set_user_attr("seconds", seconds)
    trial.set_user_attr("epochs", epochs)
    of.tell(trial, score)
    return trial


def test_the_space_is_narrow_and_around_the_given_config() -> None:
    space = space_of(config())
    assert space[RATE][0] == 1e-4
    assert (space[RATE][1].low, space[RATE][1].high) == pytest.approx((3e-5, 3e-4))
    assert (space[EPOCHS][1].low, space[EPOCHS][1].high) == (1.5, 9.0)
    assert space[ROWS][1].choices == (16, 32, 64)
    assert space["training.freeze_layers"][1].high == 3
    assert all(values._contains(values.to_internal_repr(value)) for value, values in space.values())


def test_layers_that_share_their_weights_are_not_searched() -> None:
    keys = {"training.freeze_layers", "training.layer_decay"}
    assert keys <= space_of(config()).keys()
    assert not keys & space_of(config(), groups=1).keys()


def test_the_length_is_searched_where_a_row_is_full() -> None:
    assert "task.max_length" not in space_of(config(), length=63)
    assert space_of(config(), length=64)["task.max_length"][1].choices == (32, 64)  # 128 has no positions
    assert space_of(config(max_length=50), length=50)["task.max_length"][1].choices == (25, 50, 100)


def test_pooling_is_searched_for_vectors_alone() -> None:
    vectors = VectorModel.__new__(VectorModel)
    vectors.__dict__["mode"] = "cls"
    assert space_of(config("sentence-embedding"), model=vectors)["task.pooling"][0] == "cls"
    assert "task.pooling" not in space_of(config())


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        (RATE, 1.23456e-4, 1.2e-4),
        (EPOCHS, 4.4, 4.0),
        (EPOCHS, 0.7654, 0.77),
        ("training.layer_decay", 0.8765, 0.88),
        (ROWS, 16, 16),
        ("task.pooling", "cls", "cls"),
    ],
)
def test_values_have_few_digits(key: str, value: Any, found: Any) -> None:
    assert rounded(key, value) == found


def test_runs_of_other_lengths_are_compared_by_tenths() -> None:
    assert tenths(30, [10, 20], [0.4, 0.6]) == {4: 0.4, 5: 0.4, 6: 0.4, 7: 0.6}
    assert tenths(100, [20, 40, 60], [0.5, 0.4, 0.6]) == {2: 0.5, 3: 0.5, 4: 0.5, 5: 0.5, 6: 0.6}
    assert tenths(1000, [10, 20, 110], [0.1, 0.3, 0.2]) == {1: 0.1, 2: 0.3}


def test_later_evaluations_change_no_score_of_a_tenth() -> None:
    steps, scores = [3, 9, 11, 14, 20, 33, 34], [0.3, 0.1, 0.5, 0.2, 0.6, 0.7, 0.1]
    whole = tenths(40, steps, scores)
    for number in range(1, len(steps)):
        part = tenths(40, steps[:number], scores[:number])
        assert part.items() <= whole.items()


@pytest.mark.parametrize(
    ("score", "changes"), [(0.4, {ROWS: 16}), (0.5, {ROWS: 16}), (0.6, {EPOCHS: 6.0, ROWS: 16})]
)
def test_the_first_trials_are_the_given_config_and_more_steps_of_the_best_one(
    tmp_path: Path, score: float, changes: dict[str, Any]
) -> None:
    of = study(tmp_path)
    changed = [of.changed(ended(of, each)) for each in (0.5, score, 0.5)]
    assert changed == [{}, {EPOCHS: 6.0}, changes]


def test_no_first_trial_repeats_another_for_lack_of_time(tmp_path: Path) -> None:
    of = study(tmp_path)
    ended(of, 0.5)
    trial = new(of, epochs=3.2)  # twice the epochs do not fit, and 3.2 are rounded to the 3 of before
    assert of.changed(trial).keys() - {EPOCHS}


def test_no_trial_has_more_epochs_than_fit(tmp_path: Path) -> None:
    of = study(tmp_path)
    ended(of, 0.5)
    for _ in range(6):
        trial = new(of, epochs=2.5)
        assert trial.params[EPOCHS] <= 2.5
        trial.set_user_attr("seconds", 1.0)
        of.tell(trial, 0.4)


def test_the_same_scores_give_the_same_trials_also_over_kills(tmp_path: Path) -> None:
    quiet, killed = (tmp_path / name for name in ("quiet", "killed"))
    quiet.mkdir()
    killed.mkdir()
    one = study(quiet)
    for number in range(9):
        first = ended(one, 0.1 * number % 0.37).params
        study(killed).ask(9.0)  # killed before the trial had values
        valued = study(killed)
        valued.fill(valued.unfinished, 9.0)  # killed before its run
        other = study(killed)
        again = other.unfinished
        other.fill(again, 9.0)
        assert (again.number, again.params) == (number, first)
        again.set_user_attr("seconds", 1.0)
        other.tell(again, 0.1 * number % 0.37)


def test_another_seed_gives_other_trials(tmp_path: Path) -> None:
    found = []
    for seed in (1, 2):
        (folder := tmp_path / str(seed)).mkdir()
        of = study(folder, seed)
        found.append([ended(of, 0.5).params for _ in range(4)])
    assert found[0][:3] == found[1][:3]
    assert found[0][3] != found[1][3]


def test_a_torn_line_of_the_journal_is_left_out(tmp_path: Path) -> None:
    ended(study(tmp_path), 0.5)
    with open(tmp_path / "trials.jsonl", "a") as file:
        file.write('{"op_code":4,"worker')
    of = study(tmp_path)
    assert [trial.value for trial in of.trials] == [0.5]
    ended(of, 0.6)
    assert [trial.value for trial in study(tmp_path).trials] == [0.5, 0.6]
    assert all(map(json.loads, (tmp_path / "trials.jsonl").read_text().splitlines()))


def test_a_trial_behind_most_others_is_pruned(tmp_path: Path) -> None:
    of = study(tmp_path)
    for score in (0.5, 0.6, 0.7):
        trial = new(of)
        assert not of.is_hopeless(trial, {2: 0.0, 5: score})  # too few have ended
        trial.set_user_attr("seconds", 1.0)
        of.tell(trial, score)
    trial = new(of)
    assert not of.is_hopeless(trial, {2: -1.0})  # too early
    assert of.is_hopeless(trial, {2: -1.0, 5: 0.59})
    assert not of.is_hopeless(trial, {2: -1.0, 5: 0.61})


def test_only_evaluations_that_a_run_has_seen_prune_it(tmp_path: Path) -> None:
    """A run killed after an evaluation resumes before it, and decides there as it did at first."""
    of = study(tmp_path)
    for _ in range(3):
        trial = new(of)
        of.is_hopeless(trial, {3: 0.5, 6: 0.6})
        trial.set_user_attr("seconds", 1.0)
        of.tell(trial, 0.6)
    trial = new(of)
    assert not of.is_hopeless(trial, {3: 0.55})
    assert of.is_hopeless(trial, {3: 0.55, 4: 0.55, 5: 0.55, 6: 0.55})
    assert not of.is_hopeless(trial, {3: 0.55})
    of.tell(trial, None)
    assert [each.state.name for each in of.trials] == ["COMPLETE"] * 3 + ["PRUNED"]
    assert of.trials[3].intermediate_values == {3: 0.55, 4: 0.55, 5: 0.55, 6: 0.55}
    assert of.best.number == 0  # the first of equal ones


def test_epochs_fit_into_the_time_beside_the_fresh_seeds(tmp_path: Path) -> None:
    of = study(tmp_path)
    assert of.fitting_epochs(left=0.0, total=60.0) == 9.0  # the given config is always run
    ended(of, 0.5, seconds=30.0, epochs=3.0)
    # 3 runs of the best and 3 of the given config: 198 s of 600 s. An epoch takes 10 s, 11 to be safe.
    assert of.fitting_epochs(left=198 + 55.0, total=600.0) == pytest.approx(5.0)
    assert of.fitting_epochs(left=198 + 16.0, total=600.0) == 0.0  # fewer than 1.5
    assert of.fitting_epochs(left=570.0, total=600.0) == 9.0
    # Of 200 s they would take more than 40 %: 2 runs and 1, 99 s, are less than 60 %.
    assert of.fitting_epochs(left=99 + 22.0, total=200.0) == pytest.approx(2.0)
    # A longer trial would leave no time for its own seeds: 3 runs of it and 1 of the given config in 150 s,
    assert of.fitting_epochs(left=150.0, total=200.0) == pytest.approx((150 - 33) / 3 / 11)
    # or would need more than 60 % of all time for them: 2 runs of it and 1 of the given config.
    assert of.fitting_epochs(left=170.0, total=200.0) == pytest.approx((120 - 33) / 2 / 11)
    assert of.fitting_epochs(left=22.0, total=100.0) == pytest.approx(2.0)  # no time for seeds at all
