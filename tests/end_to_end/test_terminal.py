"""Runs on a terminal of its own, as a person sees and stops them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.small_runs import run_cli, small_config, write_config
from tests.terminals import CTRL_C, on_a_terminal

BAR = re.compile(r"\|([^|]*[ ▏▎▍▌▋▊▉█])\|")


@pytest.fixture(scope="module")
def config(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("terminal")
    return write_config(folder / "config.yaml", small_config(corpus, folder / "run"))


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_the_bar_and_its_numbers_fit_into_one_line(config: Path, columns: int) -> None:
    shown, code = on_a_terminal("pretrain", config, "--overwrite", columns=columns)
    assert code == 0
    lines = [line.rstrip() for line in re.split(r"[\r\n]", shown) if line.startswith("pretrain ")]
    assert lines
    assert max(map(len, lines)) < columns
    last = lines[-1]
    assert re.match(r"pretrain 12/12 \|", last)
    assert re.search(r"0:00 left \| mlm \d\.\d{3} \(\d+\.\d%\) \| nsp \d\.\d{3} \(\d+\.\d%\)", last)
    assert ("tokens/s" in last) == (columns > 80)
    for line in lines:
        assert all(len(bar) >= 10 for bar in BAR.findall(line)), line


def test_one_ctrl_c_saves_and_names_the_command_that_goes_on(config: Path) -> None:
    more = ("--overwrite", "--set", "training.steps=2000")
    shown, code = on_a_terminal("pretrain", config, *more, typed=[(" 6/2000", CTRL_C)])
    assert code == 130
    assert "a checkpoint saved; a second Ctrl-C stops at once, without\n" in shown
    stopped = re.search(r"^stopped after step (\d+); to go on: bertcli (.*)$", shown, re.MULTILINE)
    assert stopped
    step, command = int(stopped[1]), shlex.split(stopped[2])
    assert command == ["pretrain", str(config.parent / "run"), "--resume"]
    resumed, code = on_a_terminal(
        *command, typed=[(f" {step + 5}/2000", CTRL_C)]
    )  # without the --set of before
    assert code == 130
    assert f"resuming from {config.parent / 'run' / 'checkpoints'}" in resumed
    assert int(re.findall(r"stopped after step (\d+)", resumed)[0]) > step


def test_a_second_ctrl_c_stops_at_once_and_says_what_is_lost(config: Path, tmp_path: Path) -> None:
    wide = (
        "model.hidden=512",
        "model.feed_forward=2048",
        "training.batch_size=256",
        "output_dir=" + str(tmp_path),
    )
    options = [part for each in (*wide, "training.micro_batch_size=256") for part in ("--set", each)]
    shown, code = on_a_terminal(
        "pretrain", config, *options, typed=[("pretrain 1/12", CTRL_C), ("stopping: ", CTRL_C)]
    )
    assert code == 130
    lost = "stopped at once: no checkpoint was saved yet; from the first step: bertcli pretrain"
    assert f"\n{lost} {tmp_path} --resume\n" in shown
    assert not (tmp_path / "checkpoints").exists()
    assert "Traceback" not in shown


@pytest.mark.parametrize(
    ("command", "moment", "line"),
    [
        (
            "prepare",
            "training a WordPiece",
            "stopped before a text was tokenized: the same command starts again",
        ),
        (
            "pretrain",
            "tokenizing",
            "stopped: {run}/store.partial keeps what is tokenized; the same command goes on",
        ),
    ],
)
def test_ctrl_c_before_the_first_step_says_what_is_kept(
    config: Path, tmp_path: Path, command: str, moment: str, line: str
) -> None:
    options = (
        "--set",
        f"output_dir={tmp_path}",
        "--set",
        "corpus.store=null",
        "--set",
        "corpus.files=classics",
    )
    shown, code = on_a_terminal(command, config, *options, typed=[(moment, CTRL_C)])
    assert code == 130
    assert line.format(run=tmp_path) in shown
    assert shown.count("stopped") == 1
    assert "Traceback" not in shown


def test_a_runs_folder_is_its_config_and_only_with_resume_a_run(corpus: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    config = small_config(corpus, run, training={"steps": 1})
    assert run_cli("pretrain", write_config(tmp_path / "config.yaml", config)).returncode == 0
    result = run_cli("pretrain", run)
    assert result.returncode == 2
    assert f"To continue it: bertcli pretrain {run} --resume. For a new run" in result.stderr
