"""New models of several corpora after ten minutes of this machine: by `auto` in four lines, and by `init`.

    python scripts/bench/ten_minutes.py FILES [FILES ...] --out FOLDER [--tree CHECKOUT] [--kinds four init]

Each FILES is a corpus, a folder or a glob in quotes, as `bertcli init` takes it. "four" is a config with the
files, the family, `preset: mini` and a number of steps, for BERT and for ModernBERT; the steps are those of
`--minutes` by `bertcli estimate`. "init" is the config that `bertcli init --minutes` writes. `--tree` is
another checkout whose bertcli does all of it. Prints for each run the minutes of the training command, the
held-out MLM loss, and how many nats that is below the unigram entropy. The machine must have nothing else
to do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

FAMILIES = ("bert", "modernbert")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tree", type=Path, default=Path(__file__).parents[2])
    parser.add_argument("--kinds", choices=("four", "init"), nargs="+", default=["four", "init"])
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args()
    print("| files | config | steps | minutes | MLM | below unigram |\n|---|---|---|---|---|---|", flush=True)
    for files in options.files:
        folder = options.out / Path(files).name.replace("*", "all")
        for name, config in configs(folder, str(Path(files).resolve()), options):
            run = Path(yaml.safe_load(config.read_text())["output_dir"])
            run = run if run.is_absolute() else config.parent / run
            bertcli(options.tree, config.parent, "prepare", str(config))
            begun = time.monotonic()
            bertcli(options.tree, config.parent, "pretrain", str(config))
            minutes = (time.monotonic() - begun) / 60
            print(f"| {Path(files).name} | {name} | {row(run, minutes)} |", flush=True)


def configs(folder: Path, files: str, options: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """The name and the file of each config, whose run does not exist yet."""
    folder.mkdir(parents=True, exist_ok=True)
    if "four" in options.kinds:
        for family in FAMILIES:
            path = folder / f"{family}.yaml"
            value = {
                "output_dir": str(folder.resolve() / family),
                "corpus": {"files": [files]},
                "model": {"family": family, "preset": "mini"},
                "training": {"steps": 1000},
            }
            path.write_text(yaml.safe_dump(value))
            hours = json.loads(bertcli(options.tree, folder, "estimate", str(path), "--json"))["hours"]
            value["training"] = {"steps": round(1000 * options.minutes / 60 / hours)}
            path.write_text(yaml.safe_dump(value))
            yield f"{family}, auto", path
    if "init" in options.kinds:
        path = folder / "init.yaml"
        command = ("init", files, "--minutes", str(options.minutes), "--output", path.name)
        bertcli(options.tree, folder, *command)
        yield "init", path


def row(run: Path, minutes: float) -> str:
    """The cells of a run."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last = [each for each in rows if each["split"] == "heldout"][-1]
    config = yaml.safe_load((run / "config.yaml").read_text())
    store = Path(config["corpus"].get("store") or run / "store")
    entropy = json.loads((store / "manifest.json").read_text())["unigram_entropy"]
    loss = last["mlm_loss"]
    return f"{last['step']:,} | {minutes:.2f} | {loss:.3f} | {entropy - loss:.2f}"


def bertcli(tree: Path, folder: Path, *arguments: str) -> str:
    """Standard output of a command of the checkout, in `folder`."""
    environment = os.environ | {"PYTHONPATH": str(tree.resolve())}
    line = [sys.executable, "-m", "bertcli", *arguments]
    done = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bertcli {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
