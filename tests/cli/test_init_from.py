"""`model.init_from` on the command line: every command refuses contradictions; the truth is recorded."""

from __future__ import annotations

from pathlib import Path

import yaml

from bertcli.config.load import load_config
from bertcli.config.schema import PretrainConfig
from tests.small_runs import small_config, write_config, write_corpus


def test_every_command_refuses_a_contradiction(run_bertcli, model: Path, tmp_path: Path):
    config = {
        "output_dir": str(tmp_path / "new"),
        "corpus": {"files": [str(write_corpus(tmp_path / "corpus.txt", 10, 3))]},
        "model": {"init_from": str(model), "preset": "tiny"},
    }
    path = write_config(tmp_path / "config.yaml", config)
    for command in ("pretrain", "prepare", "estimate", "check-data", "show-batch"):
        code, _, err = run_bertcli(command, path)
        assert (command, code) == (command, 2)
        assert "model.preset: tiny; the folder has hidden 15 instead of 128" in err
    assert not (tmp_path / "new").exists()


def test_a_run_records_the_folder_goes_on_and_warns_of_its_vocabulary(
    run_bertcli, model: Path, tmp_path: Path
):
    text = tmp_path / "corpus.txt"
    line = "the cat sat on a mat . the dog ran of night .\nthe Ž was dark in {} ."
    text.write_text("\n\n".join(line.format("night " * i) for i in range(1, 40)), encoding="utf-8")
    config = small_config(text, tmp_path / "new")
    config["model"], config["data"] = {"init_from": str(model)}, {"max_length": 16}
    del config["tokenizer"]
    config["training"] |= {"steps": 1, "warmup_steps": 0}
    path = write_config(tmp_path / "config.yaml", config)
    code, _, err = run_bertcli("pretrain", path)
    assert code == 0, err
    assert "of the tokens are unknown: the vocabulary lacks their characters" in err
    assert "To read them, leave model.init_from out" in err
    saved = yaml.safe_load((tmp_path / "new" / "config.yaml").read_text())
    assert (saved["model"]["preset"], saved["model"]["hidden"], saved["tokenizer"]["vocab_size"]) == (
        None,
        15,
        37,
    )
    for again in (path, tmp_path / "new" / "config.yaml"):
        code, _, err = run_bertcli("pretrain", again, "--resume", "--set", "training.steps=2")
        assert code == 0, err
    assert load_config(PretrainConfig, tmp_path / "new" / "config.yaml").training.steps == 2
