"""Jobs of Slurm: a small `sbatch` in its place runs them, and the bytes are those of one process."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from bertcli.corpus import engines
from bertcli.corpus.engines import Placing, Planned, run_stages, submit
from bertcli.corpus.pieces import ERROR, Stage
from bertcli.system.errors import UserError
from tests.corpus.builds import contents, silent, write_corpus_folder
from tests.small_runs import write_config

pytest.importorskip("datatrove")

SBATCH = """#!/bin/bash
# Run a script at once, an array one by one, but not after a job that failed. Print the number of the job.
script=${!#} after=
for argument; do case $argument in --dependency=afterok:*) after=${argument##*:} ;; esac; done
folder=$(dirname "$0")/jobs
mkdir -p "$folder"
job=$(($(ls "$folder" | wc -l) + 101))
echo 1 > "$folder/$job"
last=$(sed -n 's/^#SBATCH --array=0-\\([0-9]*\\)%[0-9]*$/\\1/p' "$script")
export SLURM_NODELIST=here
if [ -z "$after" ] || [ "$(cat "$folder/$after")" = 0 ]; then
  if [ -z "$last" ]; then
    bash "$script" > "slurm-$job.out" 2>&1
  else
    for SLURM_ARRAY_TASK_ID in $(seq 0 "$last"); do
      SLURM_ARRAY_TASK_ID=$SLURM_ARRAY_TASK_ID bash "$script" >> "$folder.out" 2>&1 || exit 0
    done
  fi && echo 0 > "$folder/$job"
fi
echo "$job"
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of Slurm's programs, which lies on PATH; the current folder is that of the test."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    for name, text in {"sbatch": SBATCH, "scontrol": '#!/bin/sh\necho "$3"\n'}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setenv("PYTHONPATH", str(Path(engines.__file__).parents[2]))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def config(tmp_path: Path) -> Path:
    value = {
        "output_dir": "run",
        "corpus": {"files": str(write_corpus_folder(tmp_path) / "corpus"), "heldout_fraction": 0.2},
        "tokenizer": {"vocab_size": 600},
    }
    return write_config(tmp_path / "config.yaml", value)


def test_jobs_clean_as_one_process_does(config: Path, cluster: Path, run_bertcli) -> None:
    jobs = ("--engine", "slurm", "--tasks", 2)
    code, printed, said = run_bertcli("clean", config, "jobs", *jobs)
    assert code == 0, said
    assert printed.split() == ["101", "102", "103", "104", "105", "106"]
    assert "the last of these jobs puts the result together" in said
    told = Path("slurm-106.out").read_text()
    assert "documents stay" in told, told
    assert not Path("jobs.partial").exists()
    code, printed, said = run_bertcli("clean", config, "here", "--tasks", 1, "--workers", 1)
    assert code == 0, said
    assert contents(Path("jobs")) == contents(Path("here"))


def test_the_shown_commands_build_the_store_of_one_process(config: Path, cluster: Path, run_bertcli) -> None:
    code, printed, said = run_bertcli("prepare", config, "--engine", "slurm", "--tasks", 2, "--dry-run")
    assert code == 0, said
    assert "#SBATCH --array=0-1%" in printed
    assert "#SBATCH --partition" not in printed
    assert not (cluster / "jobs").exists()
    commands = [line for line in printed.splitlines() if line.startswith("job=$(sbatch ")]
    subprocess.run(["bash", "-c", "\n".join(commands)], check=True)
    told = Path("slurm-102.out").read_text()
    assert "to train on" in told, told
    code, printed, said = run_bertcli("prepare", config, "--set", "output_dir=alone")
    assert code == 0, said
    assert contents(Path("run/store")) == contents(Path("alone/store"))


STAGE = Stage("writing", lambda _: 2500, lambda folder, piece: None)


@pytest.fixture
def scripts(tmp_path: Path) -> Sequence[Path]:
    """Those of 2500 tasks, of which nine work at the same time."""
    with pytest.raises(Planned) as planned:
        run_stages([STAGE], tmp_path, Placing(2500, 9, "slurm", last=["--version"]), report=silent)
    return planned.value.scripts


def test_many_tasks_share_the_jobs_of_an_array(scripts: Sequence[Path]) -> None:
    assert "#SBATCH --array=0-833%9\n" in scripts[0].read_text()  # 834 jobs of three tasks


def test_the_last_job_says_the_error_of_a_piece(scripts: Sequence[Path], tmp_path: Path) -> None:
    last = ["bash", str(scripts[-1])]
    done = subprocess.run(last, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].startswith("0."), done.stdout
    (tmp_path / ERROR).write_text("a.txt: cannot be read\n")
    done = subprocess.run(last, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "a.txt: cannot be read" in done.stderr


def test_a_refusal_names_the_jobs_to_cancel(scripts: Sequence[Path], cluster: Path) -> None:
    accept = '[ "$2" = --dependency=afterok:101 ] && { echo "Invalid account" >&2; exit 1; }; echo 101'
    (cluster / "sbatch").write_text(f"#!/bin/sh\n{accept}\n")
    with pytest.raises(UserError, match=r"last\.slurm: Invalid account; .*: scancel 101$"):
        submit(scripts)


def test_without_sbatch_nothing_begins(config: Path, cluster: Path, run_bertcli) -> None:
    (cluster / "sbatch").unlink()
    code, _, said = run_bertcli("clean", config, "out", "--engine", "slurm")
    assert code == 2
    assert "there is no sbatch on this machine; run the command where jobs are submitted" in said
    assert not Path("out.partial").exists()
