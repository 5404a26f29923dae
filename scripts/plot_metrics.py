#!/usr/bin/env python3
"""The loss curves of a run, from its metrics.jsonl: training steps, held-out text, the unigram entropy.

python scripts/plot_metrics.py runs/novels curve.png
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")  # draws into a file; needs no screen

from matplotlib import pyplot as plt

from bertcli.config.schema import PretrainConfig
from bertcli.corpus.manifest import read_manifest
from bertcli.corpus.matching import store_folder
from bertcli.training.metrics_log import read_metrics
from bertcli.training.run_folder import RunFolder

SMOOTHED_ROWS = 10
"""Logged steps to a point of the training curve: single steps are too noisy to read."""


def plot(run: Path, picture: Path) -> None:
    """Draw MLM on the left and NSP, where the run has it, on the right; over real tokens seen."""
    rows = [row for row in read_metrics(run / "metrics.jsonl") if row["loss"] is not None]
    train = [row for row in rows if row["split"] == "train"]
    heldout = [row for row in rows if row["split"] == "heldout"]
    terms = [term for term in ("mlm", "nsp") if f"{term}_loss" in train[0]]
    figure, axes = plt.subplots(1, len(terms), figsize=(5.5 * len(terms), 3.8), squeeze=False)
    for axis, term in zip(axes[0], terms, strict=True):
        axis.plot(*_smooth(train, term), color="0.7", label=f"training, mean of {SMOOTHED_ROWS} rows")
        tokens = [row["tokens"] / 1e6 for row in heldout]
        axis.plot(tokens, [row[f"{term}_loss"] for row in heldout], "o-", markersize=3, label="held out")
        axis.set(title=f"{term.upper()} loss (nats)", xlabel="million tokens seen")
        axis.grid(alpha=0.3)
    config = RunFolder(run, PretrainConfig).saved_config()
    if config is not None:
        entropy = read_manifest(store_folder(config)).unigram_entropy
        axes[0][0].axhline(entropy, color="tab:red", linestyle=":", label="unigram entropy of the corpus")
    axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(picture, dpi=110)


def _smooth(rows: list[dict[str, Any]], term: str) -> tuple[list[float], list[float]]:
    groups = [rows[start : start + SMOOTHED_ROWS] for start in range(0, len(rows), SMOOTHED_ROWS)]
    tokens = [group[-1]["tokens"] / 1e6 for group in groups]
    return tokens, [statistics.mean(row[f"{term}_loss"] for row in group) for group in groups]


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the loss curves of a run.")
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("picture", type=Path, help="the .png or .svg to write")
    arguments = parser.parse_args()
    plot(arguments.run, arguments.picture)


if __name__ == "__main__":
    main()
