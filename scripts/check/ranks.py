"""One run on 1, 2 and 4 ranks, under DDP and FSDP, and handed from 2 to 1 to 4: are the losses the same?

    python scripts/check/ranks.py [--steps 50] [--folder FOLDER]

A tiny model on the bundled classics, fp32 on the CPU. Without dropout every loss must agree within 1e-5
(relative) with those of one rank. With dropout, 2 ranks of one micro-batch each must give the bits of 1 rank
of two, of as many threads. Then a rank is killed under torchrun --max-restarts: the job must end by itself
with the same losses. Ends with exit code 1 where one of these fails. Needs only bertcli.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

KILLED_AT = 30
"""The step at which a rank is killed."""
os.environ["OMP_NUM_THREADS"] = "1"  # as torchrun sets it for several ranks: other threads round otherwise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--folder", type=Path, help="keep the runs here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        sys.exit(0 if check(options.folder or Path(scratch), options.steps) else 1)


def check(folder: Path, steps: int) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    alone = train(folder, steps, "1 rank", 1)
    good = True
    for parallel in ("ddp", "fsdp"):
        for num_ranks in (2, 4):
            run = train(folder, steps, f"{num_ranks} ranks, {parallel}", num_ranks, parallel)
            good &= say_difference(run, alone)

    handed = train(folder, steps, "2, then 1, then 4 ranks", 2)
    for num_ranks, parallel in ((1, "ddp"), (4, "fsdp")):
        newest = sorted((handed / "checkpoints").iterdir())
        for checkpoint in newest[len(newest) // 3 if num_ranks == 1 else 2 * len(newest) // 3 :]:
            shutil.rmtree(checkpoint)
        train(folder, steps, handed.name, num_ranks, parallel, resume=True)
    good &= say_difference(handed, alone)

    two, one = (train(folder, steps, f"dropout, {n} rank(s)", n, dropout=0.1) for n in (2, 1))
    same = losses(two) == losses(one) and weights(two) == weights(one)
    print(f"{'dropout: 2 ranks of 1 micro-batch':<36}{'the bits' if same else 'NOT the bits'} of 1 rank of 2")
    good &= same

    killed = train(folder, steps, "a rank killed, torchrun restarts", 2, kill_at=min(KILLED_AT, steps - 1))
    same = losses(killed) == losses(folder / "2 ranks, ddp")
    print(f"{killed.name:<36}{'the bits' if same else 'NOT the bits'} of the undisturbed run")
    return good and same


def train(
    folder: Path,
    steps: int,
    name: str,
    num_ranks: int,
    parallel: str = "ddp",
    dropout: float = 0.0,
    resume: bool = False,
    kill_at: int | None = None,
) -> Path:
    """A run of two micro-batches a step; returns its folder."""
    run = folder / name
    config = folder / f"{name}.yaml"
    config.write_text(yaml.safe_dump(config_of(folder, run, steps, parallel, dropout)))
    ranks = ["--standalone", "--nproc-per-node", str(num_ranks), "--max-restarts", "1" if kill_at else "0"]
    command = [sys.executable, "-m", "torch.distributed.run", *ranks, "-m", "bertcli", "pretrain"]
    with open(folder / f"{name}.log", "a") as log:
        process = subprocess.Popen([*command, str(config), *["--resume"] * resume], stdout=log, stderr=log)
        if kill_at is not None:
            kill_last_rank(run, kill_at, process)
        if process.wait():
            sys.exit(f"{name}: exit code {process.returncode}; see {log.name}")
    return run


def config_of(folder: Path, run: Path, steps: int, parallel: str, dropout: float) -> dict[str, Any]:
    return {
        "output_dir": str(run),
        "corpus": {"files": ["classics"], "store": str(folder / "store")},
        "tokenizer": {"vocab_size": 2000},
        "data": {"max_length": 64},
        "model": {"preset": "tiny", "dropout": dropout},
        "training": {
            "steps": steps,
            "batch_size": 16,
            "micro_batch_size": 8,
            "learning_rate": 1.0e-3,
            "warmup_steps": steps // 10,
            "device": "cpu",
            "precision": "fp32",
            "parallel": parallel,
        },
        "evaluation": {"every_steps": steps // 2, "batches": 2},
        "checkpoint": {"every_steps": max(1, steps // 10), "keep_last": 100},
        "logging": {"every_steps": 1},
    }


def wait_for(run: Path, step: int, process: subprocess.Popen[bytes]) -> None:
    """Until the log shows the step, or the process has ended."""
    metrics = run / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and f'"step": {step},' in metrics.read_text()):
        time.sleep(0.002)


def kill_last_rank(run: Path, step: int, process: subprocess.Popen[bytes]) -> None:
    wait_for(run, step, process)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)


def say_difference(run: Path, alone: Path) -> bool:
    ours, theirs = losses(run), losses(alone)
    assert ours.keys() == theirs.keys(), f"{run} has other steps"
    worst = max(abs(ours[at] / theirs[at] - 1) for at in theirs)
    print(f"{run.name:<36}{len(ours)} losses, largest relative difference {worst:.1e}", flush=True)
    return worst <= 1e-5


def losses(run: Path) -> dict[tuple[int, str], float]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {(row["step"], row["split"]): row["loss"] for row in rows}


def weights(run: Path) -> bytes:
    return (run / "model" / "model.safetensors").read_bytes()


if __name__ == "__main__":
    main()
