"""The same seed and config, on an idle machine and beside busy processes: do all runs give the same bits?

    python scripts/check/busy.py [--times 10] [--busy 4] [--folder FOLDER]

One fine-tuning and one pretraining run, both with dropout and with every `auto` left to the machine. The busy
processes compute and hold memory. Prints a line a run, and exits with 1 if any two differ.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bertcli.config.load import check_config, save_config
from bertcli.config.schema import PretrainConfig

BURNER = """
import sys, numpy
held = numpy.ones(int(sys.argv[1]) // 8)
while True:
    held[: 1 << 20] = numpy.sqrt(held[: 1 << 20] + 1)
"""


@contextmanager
def busy(processes: int, held: int) -> Iterator[None]:
    """Keep `processes` processes busy meanwhile, each of which holds `held` MiB."""
    command = [sys.executable, "-P", "-c", BURNER, str(held << 20)]
    started = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def bertcli(*arguments: object) -> None:
    """Run a command. Raises `CalledProcessError` if it fails."""
    command = [sys.executable, "-P", "-m", "bertcli", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)


def fingerprint(run: Path) -> str:
    """The hash of the weights, and of all rows of the log without their times."""
    found = hashlib.sha256((run / "model/model.safetensors").read_bytes())
    for line in (run / "metrics.jsonl").read_text().splitlines():
        row: dict[str, Any] = json.loads(line)
        found.update(repr([item for item in row.items() if "second" not in item[0]]).encode())
    return found.hexdigest()[:16]


def pretraining(folder: Path) -> Path:
    """The config of some steps of a small model with dropout."""
    config = check_config(
        PretrainConfig,
        {
            "output_dir": str(folder / "pretrained"),
            "corpus": {"files": ["classics"], "store": str(folder / "store")},
            "tokenizer": {"vocab_size": 1000},
            "data": {"max_length": 128},
            "model": {"layers": 2, "hidden": 64, "heads": 2, "feed_forward": 128, "dropout": 0.1},
            "training": {"steps": 4, "batch_size": 64, "learning_rate": 1e-3},
            "evaluation": {"batches": 1},
            "logging": {"every_steps": 1},
        },
        "busy",
    )
    save_config(config, folder / "pretrain.yaml")
    return folder / "pretrain.yaml"


def finetuning(folder: Path) -> Path:
    """The config of a run that starts with that model."""
    text = f"""
output_dir: {folder / "tuned"}
model: {folder / "pretrained/model"}
task: {{type: classification, train: sms-spam, text: message, label: label, dev_fraction: 0.1}}
training: {{epochs: 0.05, batch_size: 64, learning_rate: 1.0e-3}}
logging: {{every_steps: 1}}
"""
    (folder / "finetune.yaml").write_text(text)
    return folder / "finetune.yaml"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--busy", type=int, default=4)
    parser.add_argument("--held", type=int, default=256, help="MiB that each busy process holds")
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="busy-", dir=options.folder))
    runs = {"pretrain": (pretraining(folder), "pretrained"), "finetune": (finetuning(folder), "tuned")}
    prints: dict[str, set[str]] = {verb: set() for verb in runs}
    for processes in (0, options.busy):
        with busy(processes, options.held):
            for turn in range(options.times):
                for verb, (config, name) in runs.items():
                    bertcli(verb, config, "--overwrite")
                    found = fingerprint(folder / name)
                    prints[verb].add(found)
                    print(f"{verb}, beside {processes} busy processes, {turn + 1}: {found}", flush=True)
    for verb, found in prints.items():
        print(f"{verb}: {2 * options.times} runs, {len(found)} different results")
    return int(any(len(found) > 1 for found in prints.values()))


if __name__ == "__main__":
    sys.exit(main())
