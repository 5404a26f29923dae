"""What is `auto` follows from text, model and steps: once, said, and never again on a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from bertcli.config.load import check_config
from bertcli.config.run import PretrainRecipe, with_decisions_of
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import AUTO
from bertcli.corpus.build import prepare_store
from bertcli.folders.config_file import NEW_VOCABULARY
from bertcli.system.errors import UserError
from bertcli.training.recipe import KEYS, decide_recipe
from tests.finetunes import write_model
from tests.small_runs import run_cli, write_config
from tests.tokenizer.tokenizers_of import change_json


def decide(
    folder: Path, files: list[str], report: list[str] | None = None, **sections: Any
) -> PretrainRecipe:
    value = {"output_dir": str(folder / "run"), "corpus": {"files": files}} | sections
    lines: list[str] = [] if report is None else report
    return decide_recipe(check_config(PretrainConfig, value, "test"), lines.append)


def values(config: PretrainConfig) -> dict[str, Any]:
    return {key: getattr(getattr(config, section), key) for section, key in KEYS}


@pytest.fixture
def megabyte(tmp_path: Path) -> str:
    path = tmp_path / "text.txt"
    path.write_text("It was a dark and stormy night; the rain fell in torrents.\n" * 17_000)
    return str(path)


def test_every_key_gets_a_value_and_is_said(tmp_path: Path, megabyte: str) -> None:
    said: list[str] = []
    config = decide(tmp_path, [megabyte], said, model={"preset": "tiny"}, training={"steps": 4000})
    assert values(config) == {
        "vocab_size": 1024,
        "batch_size": 32,
        "optimizer": "muon",
        "learning_rate": 4e-3,
        "warmup_steps": 320,
        "mask_rate": 0.4,
        "dropout": 0.1,  # the text is read 70 times by a model with more parameters than it has tokens
    }
    assert "about 1.0 MB of text, 2 layers x 128 and 4,000 steps" in said[0]
    assert all(key in said[0] for _, key in KEYS)


def test_what_is_given_is_kept(tmp_path: Path, megabyte: str) -> None:
    said: list[str] = []
    given = {"batch_size": 7, "learning_rate": 0.5, "warmup_steps": 0}
    config = decide(tmp_path, [megabyte], said, training=given, data={"mask_rate": 0.2})
    assert values(config).items() >= (given | {"mask_rate": 0.2}).items()
    assert "batch_size" not in said[0]
    assert decide_recipe(config, said.append) == config
    assert len(said) == 1  # nothing was left to decide


def test_more_text_longer_runs_and_larger_models(tmp_path: Path, megabyte: str) -> None:
    small = decide(tmp_path, [megabyte], model={"preset": "small"})
    large = decide(tmp_path, [megabyte], model={"preset": "large"}, training={"steps": 200_000})
    assert large.training.learning_rate < small.training.learning_rate
    assert (small.training.batch_size, large.training.batch_size) == (32, 256)
    assert large.training.warmup_steps == 10_000
    sixteen = tmp_path / "sixteen.txt"
    sixteen.write_text(Path(megabyte).read_text() * 16)
    assert decide(tmp_path, [str(sixteen)]).tokenizer.vocab_size == 4096


def test_a_script_of_many_signs_has_room_for_them(tmp_path: Path) -> None:
    path = tmp_path / "chinese.txt"
    signs = "".join(map(chr, range(0x4E00, 0x4E00 + 3000)))
    path.write_text("\n".join(signs[i : i + 30] for i in range(0, 3000, 30)) + "\n", encoding="utf-8")
    assert decide(tmp_path, [str(path)]).tokenizer.vocab_size == 16384


def test_a_trained_model_goes_on_gently(tmp_path: Path, megabyte: str) -> None:
    model = write_model(tmp_path / "bert")
    fresh = decide(tmp_path, [megabyte], model={"layers": 2, "hidden": 32})
    config = decide(tmp_path, [megabyte], model={"init_from": str(model)})
    assert config.training.learning_rate == pytest.approx(0.2 * 0.6 * fresh.training.learning_rate, rel=0.1)
    assert (config.data.mask_rate, config.model.dropout) == (0.15, 0.1)
    assert config.tokenizer.vocab_size == 5 + 2 * 68


def test_a_model_with_a_new_vocabulary_learns_as_a_new_one(tmp_path: Path, megabyte: str) -> None:
    model = write_model(tmp_path / "bert")
    change_json(model / "config.json", **{NEW_VOCABULARY: True})
    fresh = decide(tmp_path, [megabyte], model={"layers": 2, "hidden": 32})
    config = decide(tmp_path, [megabyte], model={"init_from": str(model)})
    assert config.training == fresh.training
    assert (config.data.mask_rate, config.model.dropout) == (fresh.data.mask_rate, fresh.model.dropout)


def test_epochs_make_the_steps_that_rows_follow_from(tmp_path: Path, megabyte: str) -> None:
    few, many = (decide(tmp_path, [megabyte], training={"epochs": epochs}) for epochs in (1, 1000))
    assert (few.training.batch_size, many.training.batch_size) == (32, 64)


def test_a_store_keeps_its_vocabulary(tmp_path: Path, corpus: Path) -> None:
    section = {"files": [str(corpus)], "heldout_fraction": 0.2}
    config = decide(tmp_path, [], corpus=section, tokenizer={"vocab_size": 400})
    prepare_store(config, lambda line: None)
    assert decide(tmp_path, [], corpus=section).tokenizer.vocab_size == 400
    again = section | {"store": str(tmp_path / "run" / "store")}
    undecided = check_config(PretrainConfig, {"output_dir": str(tmp_path / "run"), "corpus": again}, "test")
    assert decide_recipe(undecided, lambda line: None, rebuild=True).tokenizer.vocab_size == 512


def test_a_resume_adopts_and_never_decides_anew(tmp_path: Path, corpus: Path) -> None:
    value = {
        "output_dir": str(tmp_path / "run"),
        "corpus": {"files": [str(corpus)], "heldout_fraction": 0.2},
        "data": {"max_length": 32},
        "model": {"layers": 1, "hidden": 16, "heads": 2, "max_positions": 32},
        "training": {"steps": 2, "device": "cpu"},
    }
    path = write_config(tmp_path / "c.yaml", value)
    first = run_cli("pretrain", path)
    assert first.returncode == 0, first.stderr
    assert "auto, for about" in first.stderr
    saved = check_config(PretrainConfig, yaml.safe_load((tmp_path / "run/config.yaml").read_text()), "saved")
    assert AUTO not in values(saved).values()
    again = run_cli("pretrain", path, "--resume", "--set", "training.steps=30")
    assert again.returncode == 0, again.stderr
    assert "auto, for about" not in again.stderr
    resumed = check_config(
        PretrainConfig, yaml.safe_load((tmp_path / "run/config.yaml").read_text()), "saved"
    )
    assert values(resumed) == values(saved)  # thirty steps alone would warm up longer
    undecided = check_config(PretrainConfig, value, "test")
    assert values(with_decisions_of(undecided, saved)) == values(saved)


def test_the_recipe_is_the_same_before_and_after_the_store(tmp_path: Path) -> None:
    section = {"files": ["classics"]}
    training = {"epochs": 340.0}
    fresh = decide(tmp_path, [], corpus=section, training=training)
    prepare_store(fresh, lambda line: None)
    assert values(decide(tmp_path, [], corpus=section, training=training)) == values(fresh)


def test_a_rotary_base_is_for_models_with_rotary_positions(tmp_path: Path, megabyte: str) -> None:
    base = {"rotary_base": 10_000.0}
    assert decide(tmp_path, [megabyte], model=base | {"family": "modernbert"}).model.rotary_base == 10_000.0
    with pytest.raises(UserError, match=r"model.rotary_base is for ModernBERT, and the model is a RoBERTa"):
        decide(tmp_path, [megabyte], model=base | {"family": "roberta"})
    with pytest.raises(UserError, match=r"model.rotary_base is for ModernBERT, and the model is a BERT"):
        decide(tmp_path, [megabyte], model=base | {"init_from": str(write_model(tmp_path / "model"))})
