"""The lowest held-out loss that minutes of two cores can buy.

    python scripts/bench/speedrun.py run NOVELS --out FOLDER --name NAME [--minutes 20] [--seeds 1 2 3]
        [--family bert] [--set training.optimizer=muon ...] [--note TEXT]
    python scripts/bench/speedrun.py tasks TASKS --out FOLDER --name NAME [--family bert] [--minutes 20]
    python scripts/bench/speedrun.py page

Corpus, vocabulary, held-out text and its masks are the same for all runs. NOVELS is a glob, in quotes:
ELTeC-eng, one file a novel. Every run starts from `BASELINE`, which `--set` changes. The number of steps
follows from the step's time: the median of 20 steps, in `ROUNDS` rounds on an idle machine. It is measured
once for each change that alters it and kept in `speedrun_times.json`, so that work of others on the machine
changes the time of a run, but not its result. Each seed that ends adds a line to `speedrun.jsonl`; one that
is already there is not repeated, and one that was cut off is resumed. `tasks` fine-tunes the model of each
seed on SST-2 (4,000 rows), WNUT-17 and CoLA, for three epochs at the rate of `auto`; TASKS is the folder of
GLUE's own files and wnut17. `page` writes the tables of `docs/speedrun.md` from these lines.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections import defaultdict
from datetime import date
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[2])]

from small_tasks import bertcli, score, task_sections, write  # noqa: E402

HERE = Path(__file__).parent
TIMES, RESULTS = HERE / "speedrun_times.json", HERE / "speedrun.jsonl"
PAGE = HERE.parents[1] / "docs" / "speedrun.md"
ROUNDS, STEPS_A_ROUND = 3, 20
TASKS = ("sst2", "wnut17", "cola")
BASELINE: dict[str, dict[str, Any]] = {
    "tokenizer": {"kind": "wordpiece", "vocab_size": 8192, "lowercase": True},
    "data": {"max_length": 128},
    "model": {"preset": "mini", "dropout": 0.0, "initialization": "published"},
    "training": {
        **{"batch_size": 64, "learning_rate": 1e-3, "warmup_steps": 300, "betas": [0.9, 0.98]},
        **{"optimizer": "adamw"},
    },
    "checkpoint": {"every_steps": 200, "keep_last": 1},
    "logging": {"every_steps": 100},
}
"""The settings of the table of families in docs/measured.md, before anything was searched."""
MARKS = ("<!-- runs -->\n", "<!-- end of runs -->")
Runs = dict[tuple[str, str], list[dict[str, Any]]]
"""Name and family -> the lines of their seeds."""
ALTER_TIME = {
    "data": ["max_length", "objective", "mask_rate", "short_pair_probability"],
    "model": ["family", "preset", "layers", "hidden", "feed_forward", "heads"],
    "training": ["batch_size", "optimizer"],
}
"""Keys whose values alter a step's time; runs that agree in them share it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    run, tasks = commands.add_parser("run"), commands.add_parser("tasks")
    run.add_argument("novels")
    tasks.add_argument("tasks", type=Path)
    for command in (run, tasks):
        command.add_argument("--out", type=Path, required=True)
        command.add_argument("--name", required=True)
        command.add_argument("--family", default="bert")
        command.add_argument("--minutes", type=float, default=20.0)
        command.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    tasks.set_defaults(command=finetune)
    run.add_argument("--set", nargs="+", default=[], dest="changes", metavar="KEY=VALUE")
    run.add_argument("--note", default="")
    run.set_defaults(command=run_seeds)
    commands.add_parser("page").set_defaults(command=write_page)
    options = parser.parse_args()
    options.command(options)


def run_seeds(options: argparse.Namespace) -> None:
    """One line of `speedrun.jsonl` for each seed that is not there yet."""
    options.out.mkdir(parents=True, exist_ok=True)
    sections = config_of(options)
    store = write(options.out / "store.yaml", sections | {"output_dir": str(options.out / "store-run")})
    bertcli("prepare", store)
    steps = int(60 * options.minutes / step_seconds(sections, options.out))
    for seed in options.seeds:
        key = key_of(options, seed)
        if any(key.items() <= line.items() for line in read_results()):
            continue
        folder = run_folder(options, seed)
        given = {**sections, "output_dir": str(folder), "seed": seed}
        given["training"] = {**given["training"], "steps": steps}
        given["evaluation"] = {"every_steps": steps, "batches": 10_000}
        resume = ["--resume"] if (folder / "checkpoints").is_dir() else []
        bertcli("pretrain", write(folder.with_suffix(".yaml"), given), *resume)
        line = {**key, "steps": steps, **outcome(folder)}
        add({**line, "changes": options.changes, "note": options.note, "date": date.today().isoformat()})


def run_folder(options: argparse.Namespace, seed: int) -> Path:
    return options.out / f"{options.name}-{options.family}-{options.minutes:g}-{seed}"


def finetune(options: argparse.Namespace) -> None:
    """One more line for each seed, with its scores, unless it is there."""
    sections = task_sections(options.tasks, options.out)
    for seed in options.seeds:
        folder = run_folder(options, seed)
        model = {"model": str(folder / "model"), "training": {"epochs": 3}}
        key = key_of(options, seed)
        if any({**key, "is_tasks": True}.items() <= line.items() for line in read_results()):
            continue
        scores = {}
        for task in TASKS:
            out = folder.with_name(f"{folder.name}-{task}")
            scores[task] = round(score(out, task, {**model, "seed": seed, "task": sections[task]}), 4)
        add({**key, "is_tasks": True, **scores, "date": date.today().isoformat()})


def key_of(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    return {"name": options.name, "family": options.family, "minutes": options.minutes, "seed": seed}


def add(line: dict[str, Any]) -> None:
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    print(json.dumps(line), flush=True)


def config_of(options: argparse.Namespace) -> dict[str, Any]:
    """`BASELINE` with the family and the changes of `--set`; a family has one store in `--out`."""
    sections: dict[str, Any] = json.loads(json.dumps(BASELINE))
    sections["corpus"] = {"files": [options.novels], "heldout_fraction": 0.05}
    sections["corpus"]["store"] = str(options.out / f"store-{options.family}")
    sections["model"]["family"] = options.family
    for change in options.changes:
        name, value = change.split("=", maxsplit=1)
        *path, last = name.split(".")
        section = sections
        for part in path:
            section = section.setdefault(part, {})
        section[last] = json.loads(value) if value[:1] in '[{"0123456789-' else value
    return sections


def step_seconds(sections: dict[str, Any], out: Path) -> float:
    """The time of a step, from `speedrun_times.json` or measured; where rows move, that of their mean."""
    known = json.loads(TIMES.read_text()) if TIMES.is_file() else {}
    altering = {
        key: sections[section][key]
        for section, keys in ALTER_TIME.items()
        for key in keys
        if key in sections[section]
    }
    if isinstance(altering["batch_size"], list):
        altering["batch_size"] = round(statistics.mean(altering["batch_size"]))
    name = ", ".join(f"{key} {value}" for key, value in sorted(altering.items()))
    if name not in known:
        config = write(out / "timed.yaml", sections | {"output_dir": str(out / "timed")})
        rows = f"training.batch_size={altering['batch_size']}"
        command = ("bench", "step", "--config", config, "--steps", STEPS_A_ROUND, "--json", "--set", rows)
        ms = [json.loads(bertcli(*command))["ms_per_step"] for _ in range(ROUNDS)]
        known[name] = {
            "ms": statistics.median(ms),
            "processor": processor(),
            "date": date.today().isoformat(),
        }
        TIMES.write_text(json.dumps(known, indent=1) + "\n")
    return known[name]["ms"] / 1e3


def outcome(folder: Path) -> dict[str, Any]:
    """Tokens that were read, and the figures of the held-out text."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    train = [row for row in rows if row["split"] == "train"][-1]
    heldout = [row for row in rows if row["split"] == "heldout"][-1]
    wanted = ("mlm_loss", "mlm_accuracy", "nsp_accuracy", "rtd_found", "rtd_accuracy", "rtd_replaced")
    figures = {name: round(heldout[name], 4) for name in wanted if name in heldout}
    return {"tokens": train["tokens"], **figures}


def processor() -> str:
    found = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout
    names = [line.split(":")[1].strip() for line in found.splitlines() if line.startswith("Model name")]
    flags = [flag for flag in ("avx2", "avx512_bf16", "amx_bf16") if f" {flag}" in found]
    return f"{names[0] if names else 'unknown'} ({', '.join(flags)})"


def read_results() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.is_file() else []


def write_page(_: argparse.Namespace) -> None:
    """Put a table for each number of minutes, and one of tasks, between the marks in docs/speedrun.md."""
    groups: dict[tuple[bool, float], Runs] = defaultdict(lambda: defaultdict(list))
    for line in read_results():
        groups[line.get("is_tasks", False), line["minutes"]][line["name"], line["family"]].append(line)
    parts = []
    for (is_tasks, minutes), runs in sorted(groups.items(), key=lambda item: (item[0][0], -item[0][1])):
        what = f"Fine-tuned after {minutes:g} minutes" if is_tasks else f"{minutes:g} minutes"
        parts.append(f"## {what}\n\n{task_table(runs) if is_tasks else table(runs)}")
    before, rest = PAGE.read_text(encoding="utf-8").split(MARKS[0])
    tables = "\n\n".join(parts)
    PAGE.write_text(f"{before}{MARKS[0]}\n{tables}\n\n{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")


def task_table(runs: Runs) -> str:
    """The mean and the range of the seeds' scores, times 100."""
    lines = [
        "| change | family | seeds | SST-2 accuracy | WNUT-17 F1 | CoLA Matthews | date |",
        "|---" * 7 + "|",
    ]
    for (name, family), seeds in runs.items():
        scores = [[100 * line[task] for line in seeds] for task in TASKS]
        told = " | ".join(f"{statistics.mean(each):.1f} ({max(each) - min(each):.1f})" for each in scores)
        lines.append(f"| {name} | {family} | {len(seeds)} | {told} | {seeds[-1]['date']} |")
    return "\n".join(lines)


def table(runs: Runs) -> str:
    """One line for each change: the mean of its seeds, their range, and the gain on its family's baseline."""
    lines = [
        "| change | family | seeds | steps | MLM loss (range) | gain | NSP | settings | date |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    means = {key: statistics.mean(line["mlm_loss"] for line in seeds) for key, seeds in runs.items()}
    for (name, family), seeds in runs.items():
        losses = [line["mlm_loss"] for line in seeds]
        base, last = means.get(("baseline", family)), seeds[-1]
        gain = "" if base is None or name == "baseline" else f"{base - means[name, family]:.3f}"
        nsp = [line["nsp_accuracy"] for line in seeds if "nsp_accuracy" in line]
        told = f"{statistics.mean(nsp):.1%}" if nsp else ""
        settings = " ".join([*(f"`{change}`" for change in last["changes"]), last["note"]]).strip()
        lines.append(
            f"| {name} | {family} | {len(seeds)} | {last['steps']:,} | {means[name, family]:.3f} "
            f"({max(losses) - min(losses):.3f}) | {gain} | {told} | {settings} | {last['date']} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
