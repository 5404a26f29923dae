"""What it brings that fine-tuning keeps the embeddings of occurring words alone (`engine.occurring_words`).

    python scripts/bench/occurring_words.py CONFIG [--pairs 40]

Steps of the config's own rows as the run takes them, and with the whole vocabulary, in turn in one process.
Prints the mean of their processor time (steps of long rows take longer), and the median ratio of a pair.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bertcli.measure.plan_finetuning as planning
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_config
from bertcli.engine.step_report import StepReport
from bertcli.measure.step import take_steps, time_in_turn
from bertcli.model.task_models import TaskModel
from bertcli.runs.occurring_words import OccurringWords
from bertcli.runs.resolve import resolve_loop
from bertcli.tasks.data import LabeledData


class AllWords(OccurringWords):
    """As if every word of the vocabulary occurred."""

    def narrow_data(self, data: LabeledData) -> LabeledData:
        return data

    def narrow_model(self, model: TaskModel) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--pairs", type=int, default=40)
    options = parser.parse_args()
    config = load_config(FinetuneConfig, options.config)
    sides = [steps_of(config, words) for words in (OccurringWords, AllWords)]
    compare({"occurring words": sides[0], "all words": sides[1]}, options.pairs)


def compare(sides: dict[str, Iterator[StepReport]], pairs: int) -> None:
    """Take steps of both sides in turn, and print how many times as fast the first is."""
    times = time_in_turn(list(sides.values()), pairs, time.process_time)
    ratio = statistics.median(b / a for a, b in zip(*(side.seconds for side in times), strict=True))
    means = [
        f"{name} {1e3 * statistics.fmean(side.seconds):.0f} ms"
        for name, side in zip(sides, times, strict=True)
    ]
    print(f"{', '.join(means)}: {ratio:.2f} times as fast")


def steps_of(config: FinetuneConfig, words: type[OccurringWords]) -> Any:
    planning.OccurringWords = words
    plan = planning.plan_finetuning(config)
    training = plan.training.model_copy(update={"compile": False, "device": "cpu"})
    training = resolve_loop(training, plan.architecture, plan.length, plan.tokens)
    assert training.micro_batch_size != "auto"
    batches = iter(plan.make_steps(training.batch_size, training.micro_batch_size))
    return take_steps(plan.build(), plan.task, batches, training)


if __name__ == "__main__":
    main()
