"""What holds for BERT's pretraining holds for each family: kills, ranks, micro-batches, and the commands.

    python scripts/check/families.py [--families roberta ... student] [--steps 24] [--folder FOLDER]

A tiny model of each family on the bundled classics, fp32 on the CPU, with the family's own objective; a
student is a DistilBERT that learns from the tiny BERT:

- killed by SIGKILL at three steps and resumed: all losses and the weights must be the same bits;
- on 2 and 4 ranks under DDP, on 2 under FSDP, handed from 2 ranks to 1, and in micro-batches of 4 and 16 rows
  instead of 8: losses within 1e-5 (relative). With replaced words a word that the generator draws may be
  another one where rounding decides, and all later losses differ with it. Then the generator's own loss of
  that step must still agree; the step is printed, and at the end how many runs drew another word;
- `check-data`, `estimate`, `bench step`, `show-batch --stats` and `verify-resume` must end with exit code 0.

Ends with exit code 1 where one of these fails. Needs bertcli with its extra `unigram`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parent))

from ranks import losses, wait_for, weights

from bertcli.families.registry import NEW

TOLERANCE = 1e-5
STUDENT = "student"
OBJECTIVES: dict[str, str] = {name: fresh.objective.name for name, fresh in NEW.items()} | {
    STUDENT: "distillation"
}
COMMANDS = (
    ("check-data", "{}"),
    ("estimate", "{}"),
    ("bench", "step", "--config", "{}", "--steps", "2"),
    ("show-batch", "{}", "--stats", "--batches", "3"),
    ("verify-resume", "{}", "--kills", "1"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--families", nargs="+", default=OBJECTIVES, choices=OBJECTIVES)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--folder", type=Path, help="keep the runs here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        good = [check(family, folder / family, options.steps) for family in options.families]
    print(f"another word was drawn in {len(REDRAWN)} runs: {', '.join(REDRAWN) or 'none'}")
    sys.exit(0 if all(good) else 1)


def check(family: str, folder: Path, steps: int) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    print(f"{family} ({OBJECTIVES[family]})", flush=True)
    samples = OBJECTIVES[family] == "rtd"
    alone = train(family, folder, "alone", steps)
    good = True
    for step in (2, steps // 2, steps - 2):
        killed = train(family, folder, f"killed at step {step}", steps, kill_at=step)
        same = losses(killed) == losses(alone) and weights(killed) == weights(alone)
        good &= same
        print(f"  {killed.name:<24}{'the bits' if same else 'NOT the bits'} of the undisturbed run")
    for num_ranks, parallel in ((2, "ddp"), (4, "ddp"), (2, "fsdp")):
        name = f"{num_ranks} ranks, {parallel}"
        run = train(family, folder, name, steps, num_ranks=num_ranks, training={"parallel": parallel})
        good &= say_difference(run, alone, samples)
    handed = train(family, folder, "2 ranks, then 1", steps, num_ranks=2)
    checkpoints = sorted((handed / "checkpoints").iterdir())
    for checkpoint in checkpoints[len(checkpoints) // 2 :]:
        shutil.rmtree(checkpoint)
    good &= say_difference(train(family, folder, handed.name, steps, resume=True), alone, samples)
    for rows in (4, 16):
        name = f"micro-batches of {rows}"
        run = train(family, folder, name, steps, training={"micro_batch_size": rows})
        good &= say_difference(run, alone, samples)
    for command in COMMANDS:
        line = [part.format(folder / "alone.yaml") for part in command]
        done = subprocess.run([sys.executable, "-m", "bertcli", *line], capture_output=True, text=True)
        good &= done.returncode == 0
        print(f"  {' '.join(command[:2]).removesuffix(' {}'):<24}exit code {done.returncode}")
        if done.returncode:
            print(done.stderr)
    return good


def train(
    family: str,
    folder: Path,
    name: str,
    steps: int,
    num_ranks: int = 1,
    kill_at: int | None = None,
    resume: bool = False,
    training: dict[str, Any] | None = None,
) -> Path:
    """A run of two micro-batches a step; returns its folder."""
    run, config = folder / name, folder / f"{name}.yaml"
    config.write_text(yaml.safe_dump(config_of(family, folder, run, steps, training or {})))
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(num_ranks)]
    command = [sys.executable, *(launcher if num_ranks > 1 else []), "-m", "bertcli", "pretrain", str(config)]
    with open(folder / f"{name}.log", "a") as log:
        process = subprocess.Popen([*command, *["--resume"] * resume], stdout=log, stderr=log)
        if kill_at is not None:
            wait_for(run, kill_at, process)
            process.send_signal(signal.SIGKILL)
            process.wait()
            process = subprocess.Popen([*command, "--resume"], stdout=log, stderr=log)
        if process.wait():
            sys.exit(f"{name}: exit code {process.returncode}; see {log.name}")
    return run


def config_of(family: str, folder: Path, run: Path, steps: int, training: dict[str, Any]) -> dict[str, Any]:
    usual = {
        "steps": steps,
        "batch_size": 16,
        "micro_batch_size": 8,
        "learning_rate": 1.0e-3,
        "warmup_steps": steps // 10,
        "device": "cpu",
        "precision": "fp32",
    }
    model, vocabulary = {"family": family, "preset": "tiny", "dropout": 0.0}, {"vocab_size": 2000}
    taught: dict[str, Any] = {}
    if family == STUDENT:
        teacher = folder.parent / "bert" / "alone"
        if not (teacher / "model").is_dir():
            sys.exit(f"the student's teacher is {teacher}; give bert before student")
        model, vocabulary = model | {"family": "distilbert"}, {}
        taught = {"distillation": {"teacher": str(teacher)}}
    return {
        "output_dir": str(run),
        **taught,
        "corpus": {"files": ["classics"], "store": str(folder / "store")},
        "tokenizer": vocabulary,
        "data": {"max_length": 64},
        "model": model,
        "training": usual | training,
        "evaluation": {"every_steps": steps // 2, "batches": 2},
        "checkpoint": {"every_steps": max(1, steps // 8), "keep_last": 100},
        "logging": {"every_steps": 1},
    }


REDRAWN: list[str] = []
"""Runs in which the generator drew another word."""


def say_difference(run: Path, alone: Path, samples: bool) -> bool:
    """Print the largest difference until another word was drawn, which only `samples` allows."""
    ours, theirs = losses(run), losses(alone)
    assert ours.keys() == theirs.keys(), f"{run} has other steps"
    differences = {at: abs(ours[at] / theirs[at] - 1) for at in theirs}
    beyond = min((at for at, difference in differences.items() if difference > TOLERANCE), default=None)
    until = [difference for at, difference in differences.items() if beyond is None or at < beyond]
    good, note = True, ""
    if beyond is not None:
        words, others = (generator_losses(each)[beyond] for each in (run, alone))
        good = samples and abs(words / others - 1) <= TOLERANCE
        note = f"; from step {beyond[0]} on {'another word was drawn' if good else 'BEYOND 1e-5'}"
        REDRAWN.extend([f"{run.parent.name}, {run.name}"] * good)
    print(
        f"  {run.name:<24}{len(until)} losses differ by at most {max(until, default=0.0):.1e}{note}",
        flush=True,
    )
    return good


def generator_losses(run: Path) -> dict[tuple[int, str], float]:
    """Of a step, the MLM loss: it is computed before words are drawn."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {(row["step"], row["split"]): row["mlm_loss"] for row in rows}


if __name__ == "__main__":
    main()
