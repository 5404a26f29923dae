"""A bundled config is found by its name, unless a file or a run of the user's has the name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_config, load_either_config
from bertcli.config.schema import PretrainConfig
from bertcli.folders.mark import Note, write_note
from bertcli.samples import CONFIGS, LABELED, SAMPLES, SENTENCES
from bertcli.system.errors import UserError


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", CONFIGS)
def test_each_is_loaded_by_its_name(name: str) -> None:
    config = load_either_config(Path(name), ["seed=5"])
    assert (config.seed, config.output_dir) == (5, f"runs/{Path(name).name}")
    assert CONFIGS[name].read_text(encoding="utf-8").startswith("# ")


def test_the_names_of_files_and_of_what_is_bundled_do_not_meet() -> None:
    names = [*CONFIGS, *SAMPLES, *SENTENCES, *LABELED]
    assert len(set(names)) == len(names)
    assert all(path.is_file() for path in SENTENCES.values())


def test_a_file_of_this_name_comes_first() -> None:
    shutil.copy(CONFIGS["families/bert"], "quickstart")
    assert load_config(PretrainConfig, Path("quickstart")).output_dir == "runs/bert"


def test_a_folder_of_this_name_that_is_no_run_hides_nothing() -> None:
    Path("novels").mkdir()
    assert load_config(PretrainConfig, Path("novels")).output_dir == "runs/novels"


def test_the_folder_of_a_run_of_this_name_is_that_run() -> None:
    Path("spam").mkdir()
    write_note(Path("spam"), Note("run"))
    with pytest.raises(UserError, match=r"^spam/config\.yaml: is missing"):
        load_config(FinetuneConfig, Path("spam"))


def test_an_unknown_name_is_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(UserError, match=r"^quickstat: no such config file") as refused:
        load_config(PretrainConfig, Path("quickstat"))
    assert str(refused.value).endswith(f"; bundled configs: {', '.join(CONFIGS)}")


def test_the_name_of_a_yaml_file_is_no_such_name() -> None:
    with pytest.raises(UserError, match=r"where bertcli was called$"):
        load_config(PretrainConfig, Path("quickstart.yaml"))


def test_problems_are_told_under_the_name() -> None:
    with pytest.raises(UserError, match=r"^quickstart: 1 problem .*\n  training\.step: unknown key"):
        load_config(PretrainConfig, Path("quickstart"), ["training.step=1"])
