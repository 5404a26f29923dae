#!/usr/bin/env python3
"""Whether the quickstart's model learned what it should: its held-out loss, and five sentences.

    python scripts/check/quickstart.py runs/quickstart

Exit code 1 where the loss is less than 0.9 nats below the unigram entropy, or where an expected word is
not among the ten likeliest.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from bertcli.corpus.manifest import read_manifest
from bertcli.folders.locate import resolve_model
from bertcli.folders.model_folder import load_model_folder
from bertcli.inference.fill_mask import fill_masks
from bertcli.inference.lines import read_lines
from bertcli.training.metrics_log import read_metrics

EXPECTED = ("know", "hand", "moment", "door", "house")
"""The word of each of the sentences."""
NATS_BELOW = 0.9
TOP_K = 10


def main() -> None:
    parser = argparse.ArgumentParser(description="Check the quickstart's model.")
    parser.add_argument("run", type=Path)
    run = parser.parse_args().run

    last = [row for row in read_metrics(run / "metrics.jsonl") if row["split"] == "heldout"][-1]
    entropy = read_manifest(run / "store").unigram_entropy
    below = entropy - last["mlm_loss"]
    print(f"held-out mlm {last['mlm_loss']:.3f}, {below:.2f} nats below the unigram entropy of {entropy:.3f}")
    good = below >= NATS_BELOW

    model = load_model_folder(resolve_model(run), pairs=False)
    lines = read_lines([], "quickstart-sentences")
    texts = fill_masks(model, lines, TOP_K, len(EXPECTED), torch.device("cpu"))
    for word, filled in zip(EXPECTED, texts, strict=True):
        tokens = [prediction.token for prediction in filled.masks[0]]
        rank = tokens.index(word) + 1 if word in tokens else None
        print(f"{word:>8}: {f'number {rank}' if rank else 'not among the likeliest'}  {filled.text}")
        good = good and rank is not None
    sys.exit(not good)


if __name__ == "__main__":
    main()
