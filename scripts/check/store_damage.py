"""Random flips in the arrays of a token store: is each recognized where the run is resumed?

    python scripts/check/store_damage.py [--flips 100] [--seed 0]

A small pretraining run is finished; then, again and again, one bit of its store's arrays is flipped, the run
is resumed, and the bit is flipped back. Exit code 1 where a flip went unnoticed.
"""

from __future__ import annotations

import argparse
import gzip
import io
import random
import sys
import tempfile
from collections import Counter
from contextlib import redirect_stderr
from pathlib import Path

from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.finish import ARRAYS
from bertcli.samples import SAMPLES
from bertcli.system.errors import UserError
from bertcli.training.pretraining import pretrain


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    drawn = random.Random(options.seed)
    noticed: Counter[str] = Counter()
    flips: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        config = make_config(Path(scratch))
        go(config, resume=False)
        store = Path(config.output_dir) / "store"
        sizes = [(store / name).stat().st_size for name in ARRAYS]
        for _ in range(options.flips):
            name = drawn.choices(ARRAYS, sizes)[0] if drawn.random() < 0.5 else drawn.choice(ARRAYS)
            place, bit = drawn.randrange((store / name).stat().st_size), drawn.randrange(8)
            flip(store / name, place, bit)
            said = go(config, resume=True)
            flips[name] += 1
            noticed[name] += name in said and "damaged" in said
            flip(store / name, place, bit)
        said = go(config, resume=True)
    for name in ARRAYS:
        print(f"{name:<24} {noticed[name]:>4} of {flips[name]:>4} recognized")
    print(f"{noticed.total()} of {options.flips} recognized (seed {options.seed})")
    print(f"undamaged: {said or 'goes on'}")
    sys.exit(noticed.total() < options.flips or bool(said))


def make_config(scratch: Path) -> PretrainConfig:
    """A run of two steps on some of the classics."""
    with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
        (scratch / "corpus.txt").write_text("\n\n".join(file.read().split("\n\n")[::3]), encoding="utf-8")
    value = {
        "output_dir": str(scratch / "run"),
        "corpus": {"files": [str(scratch / "corpus.txt")]},
        "tokenizer": {"vocab_size": 1000},
        "data": {"max_length": 32},
        "model": {"layers": 1, "hidden": 16, "heads": 2, "max_positions": 32},
        "training": {"steps": 2, "batch_size": 4, "device": "cpu", "precision": "fp32"},
        "evaluation": {"batches": 1},
    }
    return check_config(PretrainConfig, value, "pretraining")


def go(config: PretrainConfig, resume: bool) -> str:
    """Start or resume the run; what it is refused with, or nothing."""
    try:
        with redirect_stderr(io.StringIO()):
            pretrain(config, resume, False)
    except UserError as error:
        return str(error)
    return ""


def flip(path: Path, place: int, bit: int) -> None:
    with open(path, "r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))


if __name__ == "__main__":
    main()
