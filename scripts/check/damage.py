"""Random damage to checkpoints: is each recognized, named, and passed over for the one before?

    python scripts/check/damage.py [--damages 200] [--resumes 10] [--seed 0]

A pretraining and a fine-tuning run leave three checkpoints each. A damage is a flipped bit, a truncation or a
missing file anywhere in the newest one, or an edit of its manifest that still parses. After the first few the
run is resumed as well: it must end as it did. Exit code 1 where a damage went unnoticed, or an end differs.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.folders.run_layout import RunLayout
from bertcli.folders.sealed import MANIFEST
from bertcli.samples import SAMPLES
from bertcli.training.checkpoint import newest_checkpoint
from bertcli.training.finetuning import finetune
from bertcli.training.kills import differences
from bertcli.training.pretraining import pretrain

TRAINING = {"batch_size": 8, "learning_rate": 1.0e-3, "device": "cpu", "precision": "fp32"}
"""Both runs'."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--damages", type=int, default=200)
    parser.add_argument("--resumes", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    drawn = random.Random(options.seed)
    outcomes: Counter[tuple[str, bool]] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        runs = make_runs(Path(scratch))
        for number in range(options.damages):
            run = runs[number % 2]
            shutil.rmtree(run.folder)
            shutil.copytree(run.undamaged, run.folder)
            newest, before, *_ = RunLayout(run.folder).steps()
            what, done = damage(newest, drawn)
            said: list[str] = []
            noticed = newest_checkpoint(RunLayout(run.folder), said.append) == before
            noticed = noticed and len(said) == 1 and f"{newest} is damaged" in said[0]
            if number < options.resumes:
                run.go(resume=True)
                found = differences(run.undamaged, run.folder)
                noticed = noticed and not found
                done += f"; resumed: {'; '.join(found) or 'the same end'}"
            outcomes[what, noticed] += 1
            if not noticed or number < options.resumes:
                print(f"{'noticed' if noticed else 'MISSED '}  {run.folder.name:<9} {done}", flush=True)
    print()
    for what in dict.fromkeys(what for what, _ in outcomes):
        print(f"{what:<20} {outcomes[what, True]:>4} recognized {outcomes[what, False]:>4} missed")
    recognized = sum(number for (_, noticed), number in outcomes.items() if noticed)
    print(f"{recognized} of {options.damages} recognized and passed over (seed {options.seed})")
    sys.exit(recognized < options.damages)


class Run:
    """A finished run in `folder`, and a copy of it in `undamaged`."""

    def __init__(self, start: Callable[[Any, bool, bool], object], config: PretrainConfig | FinetuneConfig):
        self._start, self._config = start, config
        self.folder = Path(config.output_dir)
        self.undamaged = self.folder.with_suffix(".undamaged")
        self.go(resume=False)
        shutil.copytree(self.folder, self.undamaged)

    def go(self, resume: bool) -> None:
        with redirect_stderr(io.StringIO()):
            self._start(self._config, resume, False)


def make_runs(scratch: Path) -> list[Run]:
    """Pretraining on some of the classics; from the model that it gives, fine-tuning on the SMS messages."""
    with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
        chapters = file.read().split("\n\n")
    (scratch / "corpus.txt").write_text("\n\n".join(chapters[::20]) + "\n", encoding="utf-8")
    every = {"evaluation": {"every_steps": 4}, "checkpoint": {"every_steps": 4, "keep_last": 3}}
    pretraining = every | {
        "output_dir": str(scratch / "pretrain"),
        "corpus": {"files": [str(scratch / "corpus.txt")], "heldout_fraction": 0.5},
        "tokenizer": {"vocab_size": 1000},
        "data": {"max_length": 64},
        "model": {"layers": 1, "hidden": 32, "heads": 2, "max_positions": 64},
        "training": TRAINING | {"steps": 12},
        "logging": {"every_steps": 1},
    }
    finetuning = every | {
        "output_dir": str(scratch / "finetune"),
        "model": str(scratch / "pretrain" / "model"),
        "task": {"type": "classification", "train": "sms-spam", "text": "message", "label": "label"}
        | {"dev_fraction": 0.02, "max_length": 32},
        "training": TRAINING | {"epochs": 0.018},  # 12 steps
        "logging": {"every_steps": 1},
    }
    return [
        Run(pretrain, check_config(PretrainConfig, pretraining, "pretraining")),
        Run(finetune, check_config(FinetuneConfig, finetuning, "fine-tuning")),
    ]


def damage(checkpoint: Path, drawn: random.Random) -> tuple[str, str]:
    """Do something to a checkpoint; returns its kind, and what was done."""
    kinds = {"flipped bit": flip, "truncation": truncate, "missing file": remove, "edited manifest": edit}
    kind = drawn.choice(list(kinds))
    return kind, f"{kind}: {kinds[kind](checkpoint, drawn)}"


def any_file(checkpoint: Path, drawn: random.Random) -> Path:
    return drawn.choice(sorted(path for path in checkpoint.rglob("*") if path.is_file()))


def flip(checkpoint: Path, drawn: random.Random) -> str:
    path = any_file(checkpoint, drawn)
    content = bytearray(path.read_bytes())
    place, bit = drawn.randrange(len(content)), drawn.randrange(8)
    content[place] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {place:,} of {path.name}"


def truncate(checkpoint: Path, drawn: random.Random) -> str:
    path = any_file(checkpoint, drawn)
    left = drawn.randrange(path.stat().st_size)
    path.write_bytes(path.read_bytes()[:left])
    return f"{path.name} to {left:,} bytes"


def remove(checkpoint: Path, drawn: random.Random) -> str:
    path = any_file(checkpoint, drawn)
    path.unlink()
    return path.name


def edit(checkpoint: Path, drawn: random.Random) -> str:
    path = checkpoint / MANIFEST
    value = json.loads(path.read_text())
    files = value["files"]
    name = drawn.choice(sorted(files))
    how = drawn.choice(["hash", "size", "name", "entry", "entry and file"])
    if how == "hash":
        digits = files[name]["blake2b"]
        files[name]["blake2b"] = digits[1:] + digits[0]
    elif how == "size":
        files[name]["bytes"] += drawn.randrange(1, 10)
    elif how == "name":
        files[f"{name}.bak"] = files.pop(name)
    else:
        del files[name]
        if how == "entry and file":
            (checkpoint / name).unlink()
    path.write_text(json.dumps(value, indent=1) + "\n")
    return f"the {how} of {name}"


if __name__ == "__main__":
    main()
