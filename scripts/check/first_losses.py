"""Check the first losses of a fresh model of each preset against what its initial values predict.

    python scripts/check/first_losses.py [--presets tiny,mini] [--vocab-size 30522]

Prints a line per preset; exits 1 where an MLM loss is more than 0.05 off, or an NSP loss more than 0.15.
"""

from __future__ import annotations

import argparse
import math
import sys

import torch
import torch.nn.functional as F

from bertcli.config.model import PRESETS
from bertcli.config.run import ModelRecipe
from bertcli.folders.config_file import new_architecture
from bertcli.model.architecture import Architecture
from bertcli.model.init import expected_first_mlm_loss
from bertcli.model.pretraining import PretrainingModel

MLM_TOLERANCE = 0.05
NSP_TOLERANCE = 0.15


@torch.no_grad()
def first_losses(
    sizes: Architecture, rows: int = 16, length: int = 128, seed: int = 0
) -> tuple[float, float]:
    """(MLM, NSP) loss in nats of a fresh model on random ids, every position asked for a random word."""
    torch.manual_seed(seed)
    model = PretrainingModel(sizes).eval()
    ids_BT = torch.randint(sizes.vocab_size, (rows, length))
    segments_BT = (torch.arange(length) >= length // 2).long().expand(rows, length)
    output = model(ids_BT, segments_BT)
    assert output.pair_logits_B2 is not None
    mlm = F.cross_entropy(output.mlm_logits_MV, torch.randint(sizes.vocab_size, (rows * length,)))
    nsp = F.cross_entropy(output.pair_logits_B2, torch.arange(rows) % 2)
    return mlm.item(), nsp.item()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--presets", default=",".join(PRESETS), help="comma-separated (default: all)")
    parser.add_argument("--vocab-size", type=int, default=30522)
    options = parser.parse_args()
    failed = False
    for preset in options.presets.split(","):
        sizes = new_architecture(
            ModelRecipe.model_validate({"preset": preset, "dropout": 0.1}), options.vocab_size
        )
        expected = expected_first_mlm_loss(sizes)
        mlm, nsp = first_losses(sizes)
        good = abs(mlm - expected) <= MLM_TOLERANCE and abs(nsp - math.log(2)) <= NSP_TOLERANCE
        failed |= not good
        print(
            f"{preset:7} mlm {mlm:.4f} (expected {expected:.4f}, {mlm - expected:+.4f})"
            f"  nsp {nsp:.4f} (expected {math.log(2):.4f}, {nsp - math.log(2):+.4f})"
            f"  {'ok' if good else 'OFF'}",
            flush=True,
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
