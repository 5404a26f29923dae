from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.config.either import load_either_config
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.schema import PretrainConfig
from bertcli.system.errors import UserError
from tests.small_runs import small_config, write_config

TASK = {"type": "classification", "train": "a.tsv", "text": "text", "label": "label"}


def test_the_sections_say_which_kind_it_is(tmp_path: Path) -> None:
    pretraining = small_config(tmp_path / "a.txt", tmp_path)
    finetuning = {"output_dir": "runs/a", "model": "bert", "task": TASK}
    path = write_config(tmp_path / "config.yaml", pretraining)
    assert isinstance(load_either_config(path, ["seed=3"]), PretrainConfig)
    path = write_config(tmp_path / "config.yaml", finetuning)
    assert isinstance(load_either_config(path), FinetuneConfig)
    for config, what in ((pretraining | finetuning, "both"), ({"output_dir": "runs/a"}, "neither")):
        path = write_config(tmp_path / "config.yaml", config)
        with pytest.raises(UserError, match=f"a section task; this one has {what}"):
            load_either_config(path)
