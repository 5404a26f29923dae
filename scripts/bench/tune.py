"""`bertcli tune` from a small model: the recommended config beside the given one, by fresh seeds.

    python scripts/bench/tune.py MODEL DATA [--tasks cola wnut17 stsb] [--minutes 20] [--seeds 11 12 13 14 15]

MODEL is any BERT folder; "minilm" as in scripts/bench/finetune.py. DATA holds CoLA, STS-B (GLUE's own files)
and wnut17. The given config is the defaults. The seeds are others than those of the search. For each task it
prints the dev metric of all runs, the gain of the means, and the standard deviation over seeds. Exit code 1
if a recommended config is worse than the defaults by more than that. --rows cuts the training files, for a
quick look.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[2]))
from scripts.bench.finetune import find_minilm
from scripts.bench.small_tasks import bertcli, score, task_sections, write


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data", type=Path)
    parser.add_argument("--tasks", nargs="+", default=["cola", "wnut17", "stsb"])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seeds", nargs="+", type=int, default=[11, 12, 13, 14, 15])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--folder", type=Path, help="keep runs here; what is finished is not repeated")
    options = parser.parse_args()
    model = Path(find_minilm() if options.model == "minilm" else options.model)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        worse = [task for task in options.tasks if compare(folder, task, model, options=options)]
    sys.exit(bool(worse))


def compare(folder: Path, task: str, model: Path, options: argparse.Namespace) -> bool:
    """Search, run both configs with each seed, and print; True if the recommended one is worse."""
    section = task_sections(options.data, folder)[task]
    if options.rows:
        section["train"] = cut(section["train"], options.rows, folder / f"{task}-train")
    given = {"output_dir": str(folder / task), "model": str(model), "task": section}
    path = write(folder / f"{task}.yaml", given)
    found = json.loads(bertcli("tune", path, "--minutes", options.minutes, "--json", "--resume"))
    print(f"{task}: {len(found['trials'])} trials in {found['seconds'] / 60:.1f} min: {found['verdict']}")
    best: dict[str, Any] = yaml.safe_load(Path(found["config"]).read_text())
    scores = {
        name: [
            score(folder / f"{task}-{name}-{seed}", task, config | {"seed": seed}) for seed in options.seeds
        ]
        for name, config in (("given", given), ("best", best))
    }
    for name, values in scores.items():
        print(f"  {name}: {fmean(values):.4f} ({', '.join(f'{value:.4f}' for value in values)})")
    gain = fmean(scores["best"]) - fmean(scores["given"])
    noise = max(stdev(values) for values in scores.values())
    print(f"  gain {gain:+.4f}, standard deviation over seeds at most {noise:.4f}", flush=True)
    return gain < -noise


def cut(path: str, rows: int, target: Path) -> str:
    """A file of the first rows: lines of a table, or sentences of CoNLL."""
    text = Path(path).read_text(encoding="utf-8")
    end = "\n\n" if path.endswith(".conll") else "\n"
    target = target.with_suffix(Path(path).suffix)
    target.write_text(end.join(text.split(end)[:rows]) + end, encoding="utf-8")
    return str(target)


if __name__ == "__main__":
    main()
