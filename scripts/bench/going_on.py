"""A model goes on from its own text to another one, with and without new pieces, and beside a new model.

    python scripts/bench/going_on.py MODEL SQUAD --out FOLDER [--minutes 10] [--pieces 500]

MODEL is a model folder, SQUAD a JSON file of SQuAD, whose paragraphs are the text: an article is a document.
The three runs have as many steps as `--minutes` hold, by the time of a step that is measured first. Prints
for each the loss a word on the text and on general text before and after, and the pieces a word. Runs that
are finished in FOLDER are not repeated.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from small_tasks import bertcli, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("squad", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--pieces", type=int, default=500)
    options = parser.parse_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    text = write_paragraphs(options.squad, out / "paragraphs.txt")
    going_on = config_of(text, out / "as-it-is", {"init_from": str(options.model)})
    config = write(out / "as-it-is.yaml", going_on)
    steps = steps_in(options.minutes, config, out / "steps.json")

    extended = out / "extended"
    if not extended.exists():
        print(bertcli("extend-vocab", options.model, config, extended, "--add", options.pieces), flush=True)
    models = {
        "as it is": {"init_from": str(options.model)},
        f"with {options.pieces} new pieces": {"init_from": str(extended)},
    }
    for name, model in models.items():
        given = config_of(text, out / name.replace(" ", "-"), model)
        report(name, train(given, steps))
    sizes = {"init_from": None, "preset": "mini"}
    report("from scratch", train(config_of(text, out / "scratch", sizes), steps))


def steps_in(minutes: float, config: Path, saved: Path) -> int:
    """As many as `minutes` hold; measured once, so that a later call goes on with the same runs."""
    if not saved.is_file():
        bertcli("prepare", config)
        step = json.loads(bertcli("bench", "step", "--config", config, "--steps", 30, "--json"))
        print(f"{step['ms_per_step']:.0f} ms a step", flush=True)
        saved.write_text(json.dumps(round(60e3 * minutes / step["ms_per_step"])))
    print(f"{saved.read_text()} steps", flush=True)
    return json.loads(saved.read_text())


def write_paragraphs(squad: Path, path: Path) -> Path:
    articles = json.loads(squad.read_text(encoding="utf-8"))["data"]
    texts = ["\n".join(each["context"] for each in article["paragraphs"]) for article in articles]
    path.write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    return path


def config_of(text: Path, out: Path, model: dict[str, Any]) -> dict[str, Any]:
    return {
        "output_dir": str(out),
        "corpus": {"files": [str(text)], "heldout_fraction": 0.1},
        "model": model,
        "training": {"batch_size": 32, "betas": [0.9, 0.98]},
        "evaluation": {"every_steps": 200, "batches": 100},
        "logging": {"every_steps": 50},
    }


def train(config: dict[str, Any], steps: int) -> list[str]:
    """The lines about the end of the run; one that is finished says them again."""
    path = write(Path(f"{config['output_dir']}.yaml"), config)
    command = ["pretrain", str(path), "--resume", "--set", f"training.steps={steps}"]
    done = subprocess.run(
        [sys.executable, "-m", "bertcli", *command], stderr=subprocess.PIPE, text=True, check=True
    )
    pieces = json.loads(bertcli("prepare", path, "--json"))["tokens_per_word"]
    rows = [
        json.loads(line) for line in (Path(config["output_dir"]) / "metrics.jsonl").read_text().splitlines()
    ]
    loss = [row["mlm_loss"] for row in rows if row["split"] == "heldout"][-1]
    lines = [line for line in done.stderr.splitlines() if re.match(r"held-out text|general text", line)]
    return [*lines, f"{pieces:.3f} pieces a word, {pieces * loss:.3f} nats a word at the last evaluation"]


def report(name: str, lines: list[str]) -> None:
    print(f"{name}:", *lines, sep="\n  ", flush=True)


if __name__ == "__main__":
    main()
