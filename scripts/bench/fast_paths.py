"""What each fast path of the model (`bertcli/model/fast/`) gains of a training step on this machine's CPU.

    python scripts/bench/fast_paths.py [--presets mini small] [--rows 16] [--rounds 8]

Pretraining steps as the loop takes them, dropout 0.1, on full rows of 128 tokens and on ragged ones. A round
is a step with all paths and one without each of them, on the same batch, in turn in one process. Prints, for
each path, the processor time of a step without it over that of a step with it: the median of the rounds, and
their quartiles.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import chain, cycle, repeat

import torch

from bertcli.advice.bench.timing import MASK_RATE, synthetic_steps, take_steps, time_in_turn, training_to_time
from bertcli.batches.batch import Batch
from bertcli.batches.share import MicroBatch, Share
from bertcli.config.model import PRESETS
from bertcli.config.run import ModelRecipe, decided_loop
from bertcli.folders.config_file import new_architecture
from bertcli.model.pretraining import PretrainingModel
from bertcli.model.seam import PATHS, plain_path
from bertcli.objectives.masked_language import MaskedLanguage
from bertcli.objectives.registry import NEXT_SENTENCE
from bertcli.training.scores import StepReport

VOCAB_SIZE, LENGTH = 8192, 128


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--presets", choices=PRESETS, nargs="+", default=["mini", "small"])
    parser.add_argument("--rows", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--precision", choices=["bf16", "fp32"], default="fp32")
    options = parser.parse_args()
    for preset in options.presets:
        share = Share(options.rows)
        full = synthetic_steps(VOCAB_SIZE, options.rows, LENGTH, share)
        for name, batches in (("full", full), ("ragged", ragged_steps(options.rows, share))):
            torch.manual_seed(0)
            model = PretrainingModel(new_architecture(ModelRecipe(preset=preset, dropout=0.1), VOCAB_SIZE))
            keys = {"batch_size": options.rows, "micro_batch_size": options.rows, "compile": False}
            training = decided_loop(training_to_time(**keys, device="cpu", precision=options.precision), {})
            print(f"{preset}, {options.rows} {name} rows, {options.precision}:")
            compare(take_steps(model, MaskedLanguage(NEXT_SENTENCE), batches, training), options.rounds)


def compare(reports: Iterator[StepReport], rounds: int) -> None:
    """Take the steps in turn with all paths and without each of them; print what each of them gains."""
    paths = sorted(PATHS)
    sides = [reports, *(without(path, reports) for path in paths)]
    every, *others = time_in_turn(sides, rounds, time.process_time)
    print(f"  {1e3 * every.median:.0f} ms with all")
    for path, other in zip(paths, others, strict=True):
        ratios = [slow / fast for slow, fast in zip(other.seconds, every.seconds, strict=True)]
        first, median, third = statistics.quantiles(ratios, n=4, method="inclusive")
        print(f"  {path:14} {median:.3f} ({first:.3f} to {third:.3f})", flush=True)


def without(path: str, reports: Iterator[StepReport]) -> Iterator[StepReport]:
    """The same model's next steps, each without this path."""
    while True:
        with plain_path(path):
            report = next(reports)
        yield report


def ragged_steps(rows: int, share: Share) -> Iterator[Sequence[MicroBatch]]:
    """Rows of 5 to `LENGTH` tokens, no two of them alike: four steps, which are repeated."""
    generator = torch.Generator().manual_seed(0)

    def batch(_: object) -> Batch:
        lengths_B = torch.randint(5, LENGTH + 1, (rows,), generator=generator)
        ids_BT = torch.randint(5, VOCAB_SIZE, (rows, int(lengths_B.max())), generator=generator)
        real_BT = torch.arange(ids_BT.shape[1]) < lengths_B[:, None]
        masked_BT = real_BT & (torch.rand(ids_BT.shape, generator=generator) < MASK_RATE)
        rows_M, columns_M = masked_BT.nonzero(as_tuple=True)
        return Batch(
            ids_BT=ids_BT * real_BT,
            segments_BT=torch.zeros_like(ids_BT),
            lengths_B=lengths_B,
            rows_M=rows_M,
            columns_M=columns_M,
            targets_M=ids_BT[rows_M, columns_M],
            labels_B=torch.arange(rows) % 2,
        )

    steps = [share.of([rows], batch) for _ in range(4)]
    return chain.from_iterable(repeat(step, 1 + len(PATHS)) for step in cycle(steps))


if __name__ == "__main__":
    main()
