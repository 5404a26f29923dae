"""New models of several corpora after ten minutes of this machine: by `auto` in four lines, and by `init`.

    python scripts/bench/ten_minutes.py FILES [FILES ...] --out FOLDER [--tree CHECKOUT] [--kinds four init]

Each FILES is a corpus, a folder or a glob in quotes, as `bertcli init` takes it. "four" is a config with the
files, the family, `preset: mini` and a number of steps, for BERT and for ModernBERT; the steps are those of
`--minutes` by `bertcli estimate`. "init" is the config that `bertcli init --minutes` writes. `--tree` is
another checkout whose bertcli does all of it. With `--plan` the configs are written and nothing is trained:
that measures this machine, which must have nothing else to do. The same command without `--plan` trains by
the configs that are there; then a busy machine changes only the minutes. Prints for each run the minutes of
the training command, the held-out MLM loss, and how many nats that is below the unigram entropy. A run that
has ended is not trained again; one that was interrupted is resumed, and its minutes are those since then.
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
    parser.add_argument("--plan", action="store_true")
    options = parser.parse_args()
    print("| files | config | steps | minutes | MLM | below unigram |\n|---|---|---|---|---|---|", flush=True)
    for files in options.files:
        folder = options.out / Path(files).name.replace("*", "all")
        for name, config in configs(folder, str(Path(files).resolve()), options):
            if not options.plan:
                print(f"| {Path(files).name} | {name} | {trained(config, options.tree)} |", flush=True)


def configs(folder: Path, files: str, options: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """The name and the file of each config; a config that is there stays as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES if "four" in options.kinds else ():
        path = folder / f"{family}.yaml"
        if not path.exists():
            value = {
                "output_dir": str(folder.resolve() / family),
                "corpus": {"files": [files]},
                "model": {"family": family, "preset": "mini"},
                "training": {"steps": 1000},
            }
            probe = folder / "probe.yaml"
            probe.write_text(yaml.safe_dump(value))
            hours = json.loads(bertcli(options.tree, folder, "estimate", probe.name, "--json"))["hours"]
            value["training"] = {"steps": round(1000 * options.minutes / 60 / hours)}
            path.write_text(yaml.safe_dump(value))
        yield f"{family}, auto", path
    if "init" in options.kinds:
        path = folder / "init.yaml"
        if not path.exists():
            command = ("init", files, "--minutes", str(options.minutes), "--output", path.name)
            bertcli(options.tree, folder, *command)
        yield "init", path


def trained(config: Path, tree: Path) -> str:
    """The cells of a run, which is trained if it has not ended."""
    result = config.with_suffix(".txt")
    if not result.exists():
        bertcli(tree, config.parent, "prepare", config.name)
        run = config.parent / yaml.safe_load(config.read_text())["output_dir"]
        begun = time.monotonic()
        resume = ["--resume"] if (run / "checkpoints").is_dir() else []
        bertcli(tree, config.parent, "pretrain", config.name, *resume)
        minutes = (time.monotonic() - begun) / 60
        result.write_text(cells(run, minutes))
    return result.read_text()


def cells(run: Path, minutes: float) -> str:
    """Steps, minutes, held-out loss and what it gained on the words' frequencies."""
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
