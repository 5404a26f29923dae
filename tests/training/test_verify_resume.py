"""The proof by killing: it sees what is equal and what is not, and leaves nothing behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bertcli.config.schema import PretrainConfig
from bertcli.training import verify_resume as module
from bertcli.training.verify_resume import Verification, verify_resume
from tests.finetunes import spam_config, spam_files
from tests.small_runs import run_cli, small_config, write_config
from tests.warm import Warm

UNRELIABLE = """
import json, os, sys, yaml
from pathlib import Path
root = Path(yaml.safe_load(Path(sys.argv[1]).read_text())["output_dir"])
root.mkdir(exist_ok=True)
(root / ".lock").write_text(str(os.getpid()))
(root / "config.yaml").write_text(Path(sys.argv[1]).read_text())
number = 0 if root.name in sys.argv[2] else os.getpid()
rows = [{"step": step, "split": "train", "loss": step + number} for step in range(1, 4)]
(root / "metrics.jsonl").write_text("".join(json.dumps(row) + "\\n" for row in rows))
"""
"""Gives the same losses in the folders of argument 2, others in the rest."""


@pytest.fixture
def warm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_start", warm_start)


def warm_start(verb: str, config: Path, log: Path) -> Warm:
    with open(log, "wb") as file:
        return Warm(verb, config, "--resume", stdin=subprocess.DEVNULL, stdout=file, stderr=file)


@pytest.mark.usefixtures("warm")
def test_a_pretraining_run_is_killed_and_ends_the_same(corpus: Path, tmp_path: Path) -> None:
    config = write_config(tmp_path / "config.yaml", small_config(corpus, tmp_path / "run"))
    result = run_cli(
        *("verify-resume", config, "--steps", "8", "--kills", "1", "--json"),
        *("--folder", tmp_path / "scratch", "--set", f"corpus.store={tmp_path / 'none'}"),
    )
    assert result.returncode == 0, result.stderr
    verdict = json.loads(result.stdout)
    assert (verdict["equal"], verdict["differences"], verdict["steps"]) == (True, [], 8)
    assert verdict["rows"] == 8 + 8  # evaluated after each step
    assert len(verdict["kills"]) == 1
    assert "kill 1 of 1: row" in result.stderr
    assert list((tmp_path / "scratch").iterdir()) == []
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "none").exists()


@pytest.mark.usefixtures("warm")
def test_a_finetuning_run_of_several_seeds_takes_the_first(tmp_path: Path) -> None:
    spam_files(tmp_path)
    config = write_config(tmp_path / "config.yaml", spam_config(tmp_path) | {"seeds": [3, 4]})
    result = run_cli(
        "verify-resume", config, "--steps", "6", "--kills", "1", "--folder", tmp_path / "scratch"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("equal: killed 1 times (seed 0) in 6 steps and resumed, all 12 rows")
    assert not (tmp_path / "run").exists()


def verify_unreliable(
    monkeypatch: pytest.MonkeyPatch, corpus: Path, folder: Path, reliable_in: str
) -> Verification:
    def start(verb: str, config: Path, log: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", UNRELIABLE, str(config), reliable_in])

    monkeypatch.setattr(module, "_start", start)
    config = PretrainConfig.model_validate(small_config(corpus, folder / "run"))
    return verify_resume(config, 3, 1, 0, folder)


def test_runs_that_differ_are_kept_and_what_differs_is_said(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = verify_unreliable(monkeypatch, corpus, tmp_path, "undisturbed repeated")
    assert verdict.differences[0].startswith("metrics.jsonl, line 1: loss 1 and")
    assert verdict.repeats
    assert verdict.folder is not None
    assert (verdict.folder / "killed" / "metrics.jsonl").exists()


def test_a_device_that_does_not_repeat_itself_is_named(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not verify_unreliable(monkeypatch, corpus, tmp_path, "undisturbed").repeats


@pytest.mark.usefixtures("warm")
def test_a_run_that_fails_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    missing = small_config(tmp_path / "gone.txt", tmp_path / "run")
    config = write_config(tmp_path / "config.yaml", missing)
    result = run_cli("verify-resume", config, "--folder", tmp_path / "scratch")
    assert result.returncode == 2
    assert "error: the run ended with exit code 2; its last lines:" in result.stderr
    assert "gone.txt" in result.stderr
    assert list((tmp_path / "scratch").iterdir()) == []


def test_what_is_auto_stays_so_and_no_code_of_the_current_folder_runs(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the configs of the package and of `bertcli init`: all that can be decided is left to the run."""
    sizes = {"layers": 2, "hidden": 32, "heads": 4, "feed_forward": 64, "max_positions": 32}
    config = {
        "output_dir": str(tmp_path / "run"),
        "corpus": {"files": [str(corpus)], "heldout_fraction": 0.1},
        "data": {"max_length": 32},
        "model": sizes,
        "training": {"steps": 4},
    }
    for name in ("random", "yaml"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('code of the current folder')")
    monkeypatch.chdir(tmp_path)
    result = run_cli("verify-resume", write_config(tmp_path / "config.yaml", config), "--kills", "1")
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("equal: killed 1 times (seed 0) in 4 steps and resumed")
