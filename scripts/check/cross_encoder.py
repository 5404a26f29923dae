"""A pair task with one number in sentence-transformers: its scores are those of `bertcli predict`.

    python -m venv env && . env/bin/activate
    pip install torch==2.13.0 sentence-transformers
    bertcli predict FOLDER --input PAIRS.csv --output scores.jsonl    # with bertcli's own environment
    python scripts/check/cross_encoder.py FOLDER scores.jsonl

It runs in an environment of its own, and imports nothing of bertcli. Some pairs in PAIRS.csv should be longer
than the model reads: they must be cut in the same way. Exit code 1 if a score differs by more than 1e-5 of
the largest one.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import CrossEncoder  # pyright: ignore[reportMissingImports] -- its own environment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("scores", type=Path)
    options = parser.parse_args()
    settings = json.loads((options.folder / "config.json").read_text(encoding="utf-8"))["bertcli_task"]
    rows = [json.loads(line) for line in options.scores.read_text(encoding="utf-8").splitlines()]
    one, two = settings["text"]
    model = CrossEncoder(str(options.folder))
    theirs_N = model.predict([(row[one], row[two]) for row in rows])
    ours_N = np.array([_score(row) for row in rows])
    largest, difference = float(np.abs(ours_N).max()), float(np.abs(theirs_N - ours_N).max())
    print(f"{len(rows):,} scores, the largest {largest:.4g}, differ by at most {difference:.1e}")
    sys.exit(0 if difference <= 1e-5 * largest else 1)


def _score(row: dict[str, Any]) -> float:
    """The number of a regression, or the probability of the only label."""
    return row["value"] if "value" in row else next(iter(row["probabilities"].values()))


if __name__ == "__main__":
    main()
