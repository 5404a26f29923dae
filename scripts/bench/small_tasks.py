"""What benches of models share: pretraining for so many minutes, small labeled tasks, and scores by
`bertcli finetune`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PROBE_STEPS = 1000
"""Steps of the config whose time tells how many steps some minutes hold."""
SST2_ROWS = 4000
METRICS = {
    "cola": "matthews_correlation",
    "sst2": "accuracy",
    "stsb": "pearson_spearman",
    "wnut17": "f1",
}


def task_sections(data: Path, scratch: Path) -> dict[str, dict[str, Any]]:
    """The section `task` of each; `data` holds CoLA, SST-2, STS-B (GLUE's own files) and wnut17."""
    lines = (data / "SST-2" / "train.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    few = scratch / "sst2.tsv"
    few.write_text("".join(lines[: 1 + SST2_ROWS]), encoding="utf-8")
    single = {"type": "classification", "label": "label", "text": "sentence"}
    pair = {"type": "regression", "label": "score", "text": ["sentence1", "sentence2"]}
    sections: dict[str, dict[str, Any]] = {
        "cola": {**single, "columns": ["source", "label", "mark", "sentence"], **files(data / "CoLA")},
        "sst2": {**single, **files(data / "SST-2"), "train": str(few)},
        "stsb": {**pair, **files(data / "STS-B")},
        "wnut17": {
            "type": "token-classification",
            "train": str(data / "wnut17" / "wnut17train.conll"),
            "dev": str(data / "wnut17" / "emerging.dev.conll"),
        },
    }
    return {
        name: section | {"max_length": 128, "metric": METRICS[name]} for name, section in sections.items()
    }


def files(folder: Path) -> dict[str, str]:
    return {"train": str(folder / "train.tsv"), "dev": str(folder / "dev.tsv")}


def score(out: Path, task: str, config: dict[str, Any]) -> float:
    """Of the best model on the dev data, by the task's metric; a run that is finished in `out` is not
    repeated."""
    if not (out / "model" / "config.json").is_file():
        given = config | {"output_dir": str(out)}
        bertcli("finetune", write(out.with_suffix(".yaml"), given), "--overwrite")
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return max(row[METRICS[task]] for row in rows if row["split"] != "train")


def bertcli(*command: Any) -> str:
    """What a command prints to standard output."""
    line = [sys.executable, "-m", "bertcli", *map(str, command)]
    return subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True).stdout


def write_with_steps(path: Path, config: dict[str, Any], minutes: float, changes: Sequence[str] = ()) -> Path:
    """Write the config of a pretraining run with as many steps as `minutes` hold by `bertcli estimate`.

    That measures this machine, so a config that is there stays as it is.
    """
    if not path.exists():
        config = config | {"training": {"steps": PROBE_STEPS}}
        probe = write(path.with_suffix(".probe.yaml"), config)
        hours = json.loads(bertcli("estimate", probe, *changes, "--json"))["hours"]
        config["training"] = {"steps": round(PROBE_STEPS * minutes / 60 / hours)}
        write(path, config)
    return path


def pretrain(config: Path, changes: Sequence[str] = ()) -> Path:
    """The folder of the run of a config, which is trained, or resumed, if it has not ended."""
    run = Path(json.loads(config.read_text())["output_dir"])
    if not (run / "verdict.json").is_file():
        bertcli("pretrain", config, *changes, *(["--resume"] if (run / "checkpoints").is_dir() else []))
    return run


def write(path: Path, config: dict[str, Any]) -> Path:
    path.write_text(json.dumps(config))  # JSON is YAML
    return path
