"""Kill `bertcli tune` at chosen moments: it goes on, and no trial is lost or counted twice.

    python scripts/check/tune_kills.py [--trials 6] [--folder FOLDER]

A tiny model and the bundled messages; needs the extras `tune` and `test`. One search is not disturbed. The
other one kills itself (SIGKILL) once at each of `MOMENTS`, and is resumed. Both have time enough, so each
trial has to have the same values, evaluations and score in both, and its score has to be told once. Exit code
1 unless this is so.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[2]))

from bertcli.advice.study import Study
from bertcli.cli.main import main as cli
from bertcli.training.metrics_log import MetricsLog
from tests.finetunes import rows_but_times, spam_config, spam_files

MOMENTS = ("proposed", "valued", "evaluated", "ended", "told", "fresh seed")
"""Moments of a kill: a trial exists without values; it has values and no run; its run has evaluated once; its
run has ended and its score is not told; the score is told and the weights are still there; the run of a fresh
seed has evaluated once."""
TOLD = 6
"""The code of a line in Optuna's journal that ends a trial."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--folder", type=Path, help="keep the files here")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_child(*options.child)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        spam_files(folder)
        quiet, killed = (folder / name for name in ("quiet", "killed"))
        search(folder, quiet, "never", options.trials)
        for moment in MOMENTS:
            code = search(folder, killed, moment, options.trials)
            print(f"{moment}: exit code {code}", flush=True)
            if code != -signal.SIGKILL:
                sys.exit(f"the kill of {moment!r} did not happen")
        if search(folder, killed, "never", options.trials):
            sys.exit("the resumed search failed")
        problems = list(differences(Path(f"{quiet}-tune"), Path(f"{killed}-tune")))
    print("\n".join(problems) or f"{len(MOMENTS)} kills, {options.trials} trials: the same in both")
    sys.exit(bool(problems))


def search(folder: Path, run: Path, moment: str, trials: int) -> int:
    """Start or resume a search in a process of its own; return its exit code."""
    config = spam_config(folder, output_dir=str(run), task={"metric": "loss"}, training={"epochs": 2})
    path = run.with_suffix(".yaml")
    path.write_text(yaml.safe_dump(config))
    command = [sys.executable, __file__, "--child", moment, str(path), str(trials)]
    with run.with_suffix(".log").open("a") as log:
        return subprocess.run(command, stdout=log, stderr=log).returncode


def run_child(moment: str, config: str, trials: str) -> None:
    """The command line, which kills its process at the moment."""

    def after(own: Any, name: str, is_time: Callable[..., bool] = lambda *given: True) -> None:
        plain = getattr(own, name)

        def run_and_die(*given: Any, **named: Any) -> Any:
            result = plain(*given, **named)
            if is_time(*given):
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        setattr(own, name, run_and_die)

    def evaluates(log: Any, row: Any) -> bool:
        return row["split"] == "heldout" and ("-seed-" in str(log._path)) == (moment == "fresh seed")

    if moment == "proposed":
        after(Study, "ask")
    elif moment == "valued":
        after(Study, "fill")
    elif moment in ("evaluated", "fresh seed"):
        after(MetricsLog, "write", evaluates)
    elif moment == "told":
        after(Study, "tell")
    elif moment == "ended":
        setattr(Study, "tell", lambda *given: os.kill(os.getpid(), signal.SIGKILL))  # noqa: B010
    sys.argv = ["bertcli", "tune", config, "--minutes", "60", "--trials", trials, "--json", "--resume"]
    cli()


def differences(one: Path, other: Path) -> list[str]:
    """What differs between two searches, and scores that were told twice or never."""
    problems = []
    for root in (one, other):
        lines = [json.loads(line) for line in (root / "trials.jsonl").read_text().splitlines()]
        told = [line["trial_id"] for line in lines if line["op_code"] == TOLD and line["state"] in (1, 2)]
        folders = len([path for path in root.glob("trial-*") if "seed" not in path.name])
        if sorted(told) != list(range(folders)):
            problems.append(f"{root}: {folders} folders of trials, scores of {told}")
    runs = [{path.name for path in root.glob("trial-*")} for root in (one, other)]
    if runs[0] != runs[1]:
        problems.append(f"other runs: {sorted(runs[0] ^ runs[1])}")
    for name in sorted(runs[0] & runs[1]):
        rows = [rows_but_times(root / name / "metrics.jsonl") for root in (one, other)]
        if rows[0] != rows[1]:
            problems.append(f"{name}: other rows in metrics.jsonl")
    if (one / "best.yaml").read_text().replace("quiet", "killed") != (other / "best.yaml").read_text():
        problems.append("another best.yaml")
    return problems


if __name__ == "__main__":
    main()
