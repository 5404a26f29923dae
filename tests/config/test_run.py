from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from bertcli.config.load import check_config, config_text
from bertcli.config.run import (
    DecidedPretraining,
    PretrainRecipe,
    as_kind,
    load_config_of_run,
    with_decisions_of,
    with_values,
)
from bertcli.config.schema import PretrainConfig
from bertcli.system.errors import UserError
from tests.decided import recipe
from tests.small_runs import small_config

MACHINE = {"data": {"workers": 0}, "training": {"compile": False, "ramp_steps": 12}}


def test_no_auto_is_left_where_it_is_decided(tmp_path: Path) -> None:
    asked = check_config(PretrainConfig, {"output_dir": "run", "corpus": {"files": ["a.txt"]}}, "test")
    with pytest.raises(UserError, match=r"training.learning_rate: expected a number, got the text 'auto'"):
        as_kind(PretrainRecipe, asked, {})
    known = recipe(small_config(tmp_path / "a.txt", tmp_path))
    assert known.data.workers == "auto"
    with pytest.raises(UserError, match=r"data.workers: expected a number, got the text 'auto'"):
        as_kind(DecidedPretraining, known, {})
    decided = as_kind(DecidedPretraining, known, MACHINE)
    assert (decided.data.workers, decided.training.compile) == (0, False)
    assert config_text(decided) == config_text(with_values(known, MACHINE))
    (tmp_path / "config.yaml").write_text(config_text(asked))
    with pytest.raises(UserError, match="got the text 'auto'"):
        load_config_of_run(tmp_path / "config.yaml")


def test_other_ranks_get_the_same_config(tmp_path: Path) -> None:
    known = recipe(small_config(tmp_path / "a.txt", tmp_path))
    for config in (known, as_kind(DecidedPretraining, known, MACHINE)):
        again = pickle.loads(pickle.dumps(config))
        assert again == config
        assert type(again) is type(config)


def test_a_copy_is_checked_and_its_defaults_stay_defaults(tmp_path: Path) -> None:
    config = check_config(PretrainConfig, small_config(tmp_path / "a.txt", tmp_path), "test")
    copy = with_values(config, {"training": {"steps": 5}, "corpus": {"encodings": {}}})
    assert (copy.training.steps, copy.training.batch_size) == (5, config.training.batch_size)
    assert copy.model.model_fields_set == config.model.model_fields_set
    with pytest.raises(UserError, match=r"training\.steps"):
        with_values(config, {"training": {"steps": 0}})


def test_a_resume_takes_decisions_and_nothing_else(tmp_path: Path) -> None:
    saved = recipe(small_config(tmp_path / "a.txt", tmp_path, training={"steps": 12, "warmup_steps": 7}))
    value = {"output_dir": "run", "corpus": {"files": ["a.txt"]}, "training": {"learning_rate": 0.5}}
    config = with_decisions_of(check_config(PretrainConfig, value, "test"), saved)
    assert (config.training.warmup_steps, config.data.mask_rate) == (7, 0.15)
    assert (config.training.learning_rate, config.training.steps, config.data.max_length) == (0.5, None, 128)
