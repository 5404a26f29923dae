"""What several sources are worth: two languages by temperature, general text while going on, longer rows.

    python scripts/bench/sources.py temperature GERMAN PORTUGUESE --out FOLDER [--values 1 0.7 0.3]
    python scripts/bench/sources.py replay TEXT GENERAL --model MODEL --out FOLDER [--values 0 5 20]
    python scripts/bench/sources.py longer TEXT --model MODEL --out FOLDER [--values 512]

All take [--minutes 10] and [--plan]. A run has as many steps as `--minutes` hold by `bertcli estimate`, and
those of one kind have as many as the first one; with `--plan` that is measured and nothing is trained.
`temperature` trains a new model (`preset: mini`) of both folders and prints the held-out loss of each, and
the nats a word.
`replay` goes on from a model with so many percent of general text among the rows, and prints nats a word
before and after of both. `longer` goes on with rows of so many tokens, and prints the loss of masked words
at the old length and at the new one, before and after; both models are read by `bertcli evaluate` on the
bundled classics. A run that has ended is not trained again.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from small_tasks import bertcli, pretrain, write, write_with_steps  # noqa: E402

from bertcli.folders.config_file import read_architecture  # noqa: E402
from bertcli.folders.lengths import trained_length  # noqa: E402

VALUES = {"temperature": [1.0, 0.7, 0.3], "replay": [0.0, 5.0, 20.0], "longer": [512.0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kind", choices=VALUES)
    parser.add_argument("texts", nargs="+", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--values", nargs="+", type=float)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--plan", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    steps = None
    for value in options.values or VALUES[options.kind]:
        name = f"{options.kind}-{value:g}"
        config = planned(name, SECTIONS[options.kind](options, value), options, steps)
        steps = json.loads(config.read_text())["training"]["steps"]
        if not options.plan:
            run = pretrain(config)
            for line in SAID[options.kind](options, run):
                print(f"{name}: {line}", flush=True)


def temperature(options: argparse.Namespace, value: float) -> dict[str, Any]:
    return {"corpus": {"sources": sources(options.texts), "temperature": value}, "model": {"preset": "mini"}}


def replay(options: argparse.Namespace, percent: float) -> dict[str, Any]:
    weights = [100 - percent, percent][: 2 if percent else 1]
    named = [each | {"weight": weight} for each, weight in zip(sources(options.texts), weights, strict=False)]
    corpus = {"sources": named} if percent else {"files": named[0]["files"]}
    corpus |= {"general": [str(options.texts[1])]}  # the same text measures all of them
    return {"corpus": corpus, "data": {"objective": "mlm"}, "model": {"init_from": str(options.model)}}


def longer(options: argparse.Namespace, tokens: float) -> dict[str, Any]:
    positions = read_architecture(options.model / "config.json").max_positions
    more = {"max_positions": int(tokens)} if tokens > positions else {}
    return {
        "corpus": {"files": [str(path) for path in options.texts]},
        "data": {"objective": "mlm", "max_length": int(tokens)},
        "model": {"init_from": str(options.model)} | more,
    }


def sources(texts: list[Path]) -> list[dict[str, Any]]:
    return [{"name": path.name, "files": str(path.resolve())} for path in texts]


def planned(name: str, sections: dict[str, Any], options: argparse.Namespace, steps: int | None) -> Path:
    """The config of a run of so many steps, None: of `--minutes`; one that is there stays as it is."""
    sections["corpus"] |= {"document": "file", "heldout_fraction": 0.05}
    value = sections | {
        "output_dir": str((options.out / name).resolve()),
        "evaluation": {"every_steps": 10**9, "batches": 10_000},
        "logging": {"every_steps": 100},
    }
    path = options.out / f"{name}.yaml"
    if steps is None:
        return write_with_steps(path, value, options.minutes)
    return path if path.exists() else write(path, value | {"training": {"steps": steps}})


def nats(options: argparse.Namespace, run: Path) -> Iterator[str]:
    """The losses of `losses`, and those of each source in nats a word.

    Each run has a vocabulary of its own, so its losses of a piece cannot be compared with another's.
    """
    yield from losses(options, run)
    last = heldout(run)[-1]
    tokens = json.loads(bertcli("prepare", run.with_name(f"{run.name}.yaml"), "--json"))["sources"]
    for folder in options.texts:
        words = sum(len(path.read_text().split()) for path in folder.iterdir())
        pieces = sum(tokens[folder.name].values()) / words
        loss = last[f"{folder.name}/mlm_loss"]
        yield f"{folder.name}: {pieces:.3f} pieces a word, {pieces * loss:.3f} nats a word"


def heldout(run: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [row for row in rows if row["split"] == "heldout"]


def losses(_: argparse.Namespace, run: Path) -> Iterator[str]:
    """The held-out losses of a run, with those of each source."""
    last = heldout(run)[-1]
    figures = [f"{name} {value:.3f}" for name, value in last.items() if name.endswith("mlm_loss")]
    yield f"{last['step']:,} steps, {', '.join(figures)}"


def gains(options: argparse.Namespace, run: Path) -> Iterator[str]:
    """Nats a word before and after, as the run said at its end."""
    yield from losses(options, run)
    said = json.loads((run / "verdict.json").read_text())["lines"]
    yield from (line for line in said if line.startswith(("held-out text", "general text")))


def lengths(options: argparse.Namespace, run: Path) -> Iterator[str]:
    """The loss of masked words before and after, at the old length and, where it can be read, at the new."""
    yield from losses(options, run)
    old, new = trained_length(options.model), trained_length(run / "model")
    assert old is not None
    assert new is not None
    longest = read_architecture(options.model / "config.json").usable_positions
    for name, model, length in (
        ("before", options.model, old),
        ("before", options.model, min(new, longest)),
        ("after", run, old),
        ("after", run, new),
    ):
        command = ("evaluate", model, "--corpus", "classics", "--max-length", length, "--json")
        yield f"{name}, rows of {length}: {json.loads(bertcli(*command))['mlm_loss']:.3f}"


SECTIONS = {"temperature": temperature, "replay": replay, "longer": longer}
SAID = {"temperature": nats, "replay": gains, "longer": lengths}

if __name__ == "__main__":
    main()
