"""What it brings that attention goes over rows in groups of like length (`model.row_groups`).

    python scripts/bench/row_groups.py CONFIG [--pairs 40]

Steps of a fine-tuning config's own rows as the run takes them, and with all rows of a step in one group, in
turn in one process. Prints the mean of their processor time (steps of long rows take longer), and the median
ratio of a pair.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from bench_occurring_words import compare, steps_of

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_config
from bertcli.engine.step_report import StepReport
from bertcli.model import row_groups
from bertcli.runs.occurring_words import OccurringWords


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--pairs", type=int, default=40)
    options = parser.parse_args()
    config = load_config(FinetuneConfig, options.config)
    never = 10**18
    sides = [
        with_worth(worth, steps_of(config, OccurringWords)) for worth in (row_groups.WORTH_A_GROUP, never)
    ]
    compare({"in groups": sides[0], "all together": sides[1]}, options.pairs)


def with_worth(worth: int, steps: Iterator[StepReport]) -> Iterator[StepReport]:
    """The steps, each with this price of a group."""
    while True:
        row_groups.WORTH_A_GROUP = worth
        yield next(steps)


if __name__ == "__main__":
    main()
