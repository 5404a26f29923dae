"""The memory of a batch of 512 pairs with cached gradients (bertcli/training/loop.py).

    python scripts/bench/cached_gradients.py [--pairs 512] [--length 64] [--texts 16]

One step in fp32, without dropout, of a model of MiniLM's size (6 layers x 384) with random weights: the plain
loss of all pairs at once, the same by cached gradients with some texts at once, and a plain batch that has
only these texts. Each in a process of its own. Prints the peak of the process, and how much of it the step
took; and the largest difference of a gradient of the first two, as a share of the largest gradient. The plain
loss takes 14 GB.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from bertcli.batches.share import Share
from bertcli.config.task import TaskSettings
from bertcli.model.architecture import Architecture
from bertcli.model.task_models import VectorModel
from bertcli.system.memory import peak_memory, resident_memory
from bertcli.tasks.sentence_embedding import SentenceEmbedding
from bertcli.tasks.supervised import Item, LabeledBatch
from bertcli.tokenizer.frame import Row
from bertcli.training.loop import LoopSettings, train

MEGABYTE = 1_000_000
VOCABULARY = 30522
SPREAD = 0.1
"""Of the weights. With the usual 0.02 all texts have nearly the same vector, and rounding counts."""
CPU = torch.device("cpu")


class Recorder(torch.optim.SGD):
    """Keeps the gradients of a step, and changes nothing."""

    def step(self, closure: Callable[[], Any] | None = None) -> None:
        parameters = self.param_groups[0]["params"]
        self.gradients = [each.grad.clone() for each in parameters if each.grad is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--pairs", type=int, default=512)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--texts", type=int, default=16)
    parser.add_argument("--one", type=Path, help="of the process of one step: where its gradients go")
    options = parser.parse_args()
    if options.one is not None:
        step(options)
        return
    with tempfile.TemporaryDirectory() as folder:
        sides = {
            "plain loss": (options.pairs, 2 * options.pairs),
            "cached gradients": (options.pairs, options.texts),
            "plain, a micro-batch": (options.texts // 2, options.texts),
        }
        print(f"{'':22}pairs  texts at once  peak MB  of the step")
        for name, (pairs, texts) in sides.items():
            given = {"pairs": pairs, "length": options.length, "texts": texts, "one": Path(folder, name)}
            arguments = [each for key, value in given.items() for each in (f"--{key}", str(value))]
            command = [sys.executable, __file__, *arguments]
            peak, before = map(
                int, subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.split()
            )
            taken = (peak - before) / MEGABYTE
            print(f"{name:22}{pairs:5}{texts:15}{peak / MEGABYTE:9,.0f}{taken:13,.0f}", flush=True)
        plain, cached = (torch.load(Path(folder, name)) for name in list(sides)[:2])
    difference = max(float((one - other).abs().max()) for one, other in zip(plain, cached, strict=True))
    largest = max(float(each.abs().max()) for each in plain)
    print(f"largest difference of a gradient: {difference / largest:.1e} of the largest gradient")


def step(options: argparse.Namespace) -> None:
    """Save the gradients of one step, and print the peak of the memory and what was held before."""
    torch.manual_seed(0)
    sizes = Architecture(VOCABULARY, 384, 6, 12, 1536, max_positions=512, init_std=SPREAD)
    sizes = replace(sizes, dropout=0.0, attention_dropout=0.0)
    model = VectorModel(sizes)
    ids_NT = torch.randint(VOCABULARY, (2 * options.pairs, options.length)).tolist()
    rows = [Row(ids, options.length) for ids in ids_NT]
    pairs = zip(rows[::2], rows[1::2], strict=True)
    items = [Item(number, pair, None, layout=[1, 1]) for number, pair in enumerate(pairs)]
    task = SentenceEmbedding(TaskSettings(type="sentence-embedding", text=["a", "b"]))
    batches = LabeledBatch(tuple(items), pad_id=0).micro_batches(Share(options.texts))
    settings = LoopSettings(0, CPU, "fp32", max_grad_norm=float("inf"), rate=lambda step: 0.0)
    optimizer = Recorder(model.parameters())
    before = resident_memory(CPU)
    list(train(model, task, [batches], optimizer, settings, 0))
    print(peak_memory(CPU), before)
    torch.save(optimizer.gradients, options.one)


if __name__ == "__main__":
    main()
