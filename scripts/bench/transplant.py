"""A model goes on to another text, with its own vocabulary and with others, beside a new model of its sizes.

    python scripts/bench/transplant.py MODEL TEXTS --out FOLDER [--minutes 20] [--vocab-size 8192]
        [--pieces 500] [--set corpus.document=file ...] [--plan]

MODEL is a model folder, TEXTS a folder of texts. The runs learn masked words, each for as many steps as
`--minutes` hold by `bertcli estimate`. `--vocab-size` is for the vocabulary of the text, of the transplanted
and of the new model; `--pieces` are added by `extend-vocab`. `--set` is for all configs. With `--plan` the
configs are written and nothing is trained: that measures this machine, which must have nothing else to do.
The same command without `--plan` trains by the configs that are there. A run that has ended is not trained
again.

Prints a row for each model: steps, pieces a word, held-out loss of a masked piece, and that loss times the
pieces a word, before the first step and after the last one. These nats a word are those of
`bertcli/training/gain.py`, by which models with different vocabularies are compared. Losses of pieces cannot
be compared.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from small_tasks import bertcli, pretrain, write, write_with_steps  # noqa: E402

from bertcli.config.model import Sizes  # noqa: E402
from bertcli.families.registry import new_name  # noqa: E402
from bertcli.folders.config_file import read_architecture  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--vocab-size", type=int, default=8192)
    parser.add_argument("--pieces", type=int, default=500)
    parser.add_argument("--set", nargs="+", default=[], dest="changes", metavar="KEY=VALUE")
    parser.add_argument("--plan", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    changes = [part for change in options.changes for part in ("--set", change)]
    configs = plan(options, changes)
    if not options.plan:
        print("| model | steps | pieces a word | loss of a piece | nats a word before | after |")
        print("|---|---|---|---|---|---|", flush=True)
        for name, config in configs.items():
            print(f"| {name} | {' | '.join(trained(config, changes))} |", flush=True)


def plan(options: argparse.Namespace, changes: list[str]) -> dict[str, Path]:
    """The config of each model by its name in the table; a config or a model that is there stays as it is."""
    out, sizes = options.out, read_architecture(options.model / "config.json")
    tokenizer = {"vocab_size": options.vocab_size}
    new = {"family": new_name(sizes.family), **{key: getattr(sizes, key) for key in Sizes._fields}}
    of_text = write(out / "of-text.yaml", config_of(options, "of-text", {}) | {"tokenizer": tokenizer})
    for verb, more in (("transplant", []), ("extend-vocab", ["--add", options.pieces])):
        if not (out / verb).exists():
            bertcli(verb, options.model, of_text, out / verb, *more, *changes)
    models: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "transplanted": ({"init_from": str(out / "transplant")}, {}),
        f"{options.pieces} pieces added": ({"init_from": str(out / "extend-vocab")}, {}),
        "its own vocabulary": ({"init_from": str(options.model)}, {}),
        "new": (new, tokenizer),
    }
    configs: dict[str, Path] = {}
    for name, (model, vocabulary) in models.items():
        path = out / f"{name.replace(' ', '-')}.yaml"
        value = config_of(options, path.stem, model) | {"tokenizer": vocabulary}
        configs[name] = write_with_steps(path, value, options.minutes, changes)
    return configs


def config_of(options: argparse.Namespace, name: str, model: dict[str, Any]) -> dict[str, Any]:
    return {
        "output_dir": str(options.out / name),
        "corpus": {"files": [str(options.texts)], "heldout_fraction": 0.05},
        "data": {"objective": "mlm"},
        "model": model,
        "evaluation": {"every_steps": 10**9, "batches": 10_000},
        "logging": {"every_steps": 100},
    }


def trained(config: Path, changes: list[str]) -> list[str]:
    """The cells of a run, which is trained if it has not ended."""
    run = pretrain(config, changes)
    pieces = json.loads(bertcli("prepare", config, *changes, "--json"))["tokens_per_word"]
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last = [row for row in rows if row["split"] == "heldout"][-1]
    said = json.loads((run / "verdict.json").read_text())["lines"]
    gains = [line for line in said if line.startswith("held-out text") and " -> " in line]
    loss = last["mlm_loss"]
    before = gains[0].split(": ")[1].split(" -> ")[0] if gains else "no MLM head"
    return [f"{last['step']:,}", f"{pieces:.3f}", f"{loss:.3f}", before, f"{pieces * loss:.3f}"]


if __name__ == "__main__":
    main()
