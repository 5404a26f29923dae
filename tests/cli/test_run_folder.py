"""The folder of a run, given in place of its config."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from bertcli.config.load import load_config
from bertcli.config.schema import PretrainConfig
from tests.finetunes import spam_config, spam_files
from tests.small_runs import read_rows, run_cli, small_config, write_config


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose config file, with its --set, is gone."""
    folder = tmp_path_factory.mktemp("given")
    config = write_config(folder / "config.yaml", small_config(corpus, folder / "run"))
    done = run_cli("pretrain", config, "--set", "training.steps=6", "--set", "data.mask_rate=0.3")
    assert done.returncode == 0, done.stderr
    config.unlink()
    return folder / "run"


def test_resume_needs_no_set_again(run_bertcli, run: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(run, tmp_path / "moved")
    code, out, err = run_bertcli("pretrain", moved, "--resume", "--set", "training.steps=8")
    assert code == 0, err
    assert out == f"{moved / 'model'}\n"
    assert "resume: training.steps changes from 6 to 8" in err
    assert read_rows(moved / "metrics.jsonl", "train")[-1]["step"] == 8
    saved = load_config(PretrainConfig, moved)
    assert (saved.data.mask_rate, saved.output_dir) == (0.3, str(moved))
    assert read_rows(run / "metrics.jsonl", "train")[-1]["step"] == 6


def test_other_commands_read_the_config_of_a_run(run_bertcli, run: Path) -> None:
    for command in ("prepare", "estimate", "check-data"):
        code, out, err = run_bertcli(command, run, "--json")
        assert code == 0, err
        json.loads(out)
    code, out, _ = run_bertcli("show-batch", run, "-n", "1")
    assert (code, "[MASK]<" in out) == (0, True)


@pytest.mark.parametrize(
    ("command", "path", "message"),
    [
        (("pretrain",), "", "{run}: already has a run. To continue it: bertcli pretrain {run} --resume"),
        (("pretrain", "--overwrite"), "", "config: bertcli pretrain {run}/config.yaml --set output_dir="),
        (("pretrain", "--resume"), "model", "{run}/model: is a part of the run in {run}; give {run}"),
        (("pretrain", "--resume"), "checkpoints", "checkpoints: is a folder, and not that of a run"),
        (("estimate",), "..", "is a folder, and not that of a run (a run has .bertcli.json and config.yaml"),
        (("finetune", "--resume"), "", "{run}/config.yaml: 1 problem in the config:\n  it has"),
        (("pretrain", "--resume", "--set", "steps=9"), "", "unknown key; did you mean training.steps?"),
    ],
)  # fmt: skip
def test_what_is_no_run_or_not_to_be_continued_is_said(
    run_bertcli, run: Path, command: tuple[str, ...], path: str, message: str
) -> None:
    code, out, err = run_bertcli(command[0], run / path, *command[1:])
    assert (code, out) == (2, "")
    assert message.format(run=run) in err


def test_a_run_that_lost_its_config_is_said(run_bertcli, run: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "config.yaml").unlink()
    code, _, err = run_bertcli("pretrain", copy, "--resume")
    assert (code, err.startswith(f"error: {copy / 'config.yaml'}: is missing")) == (2, True)


def test_runs_of_seeds_are_continued_together(run_bertcli, tmp_path: Path) -> None:
    spam_files(tmp_path)
    value = spam_config(tmp_path, seeds=[1, 2], training={"epochs": 1})
    code, _, err = run_bertcli("finetune", write_config(tmp_path / "config.yaml", value))
    assert code == 0, err
    run = tmp_path / "run"
    code, _, err = run_bertcli("finetune", run / "seed-2", "--resume")
    assert (code, err) == (2, f"error: {run / 'seed-2'}: is a part of the run in {run}; give {run}\n")
    code, _, err = run_bertcli("finetune", run, "--resume")
    assert code == 0
    assert f"{run / 'seed-2'} is finished" in err
