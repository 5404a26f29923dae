#!/usr/bin/env python3
"""Run the strategies of tests/fuzz for as long as you like, with new inputs each time.

    python scripts/check/fuzz.py --minutes 20 [--only manifest]

Prints a line for each kind of input: how often it gave a good result and how often a refusal in words. Exit
code 1 where an input did anything else: it is printed, shrunk; keep it as an @example of its test.
"""

from __future__ import annotations

import argparse
import importlib
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # before torch looks
os.environ["BERTCLI_FUZZ_EXAMPLES"] = "150"  # of each test in a round; before the tests look
sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.fuzz import guard

MEMORY = 12 << 30
"""Bytes of addresses: an input that asks for more fails instead of taking the machine along."""


def find_tests(only: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """(name, test) of every Hypothesis test in tests/fuzz."""
    for path in sorted(Path(guard.__file__).parent.glob("test_*.py")):
        module = importlib.import_module(f"tests.fuzz.{path.stem}")
        for name, test in vars(module).items():
            if name.startswith("test_") and hasattr(test, "hypothesis") and only in f"{path.stem}::{name}":
                yield f"{path.stem}::{name}", test


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz everything that reads a file.")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--only", default="", help="part of a test's name")
    arguments = parser.parse_args()

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    tests, failed = dict(find_tests(arguments.only)), {}
    end = time.monotonic() + 60 * arguments.minutes
    while time.monotonic() < end and tests:
        for name in list(tests):
            try:
                tests[name]()
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                traceback.print_exception(error)
                failed[name] = tests.pop(name)
            if time.monotonic() >= end:
                break
    for label in sorted({label for label, _ in guard.outcomes}):
        good, refused = (guard.outcomes[label, outcome] for outcome in ("good", "refused"))
        print(f"{label:>24}: {good + refused:9,} inputs, {good:9,} good, {refused:9,} refused in words")
    print(f"{sum(guard.outcomes.values()):,} inputs; {len(failed)} tests failed {', '.join(failed)}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
