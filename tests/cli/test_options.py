"""Numbers that are given as options, on every command line that the reference lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Bertcli = Callable[..., tuple[int, str, str]]


def numeric_options() -> Iterator[tuple[str, str]]:
    """A command line and its option that takes a number, as the reference of all commands lists them."""
    reference = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    for section in re.split("^##+ ", reference, flags=re.MULTILINE):
        words = section.split("`")[1].removeprefix("bertcli ") if section.startswith("`bertcli ") else ""
        for option in re.findall(r"^\| `(?:-\w, )?(--?[\w-]+) <(?:int|float)", section, flags=re.MULTILINE):
            yield words, option


BOUND_BY_THE_MODEL = [("predict-mask", "--top-k"), ("attention", "--layer"), ("attention", "--head")]


@pytest.mark.parametrize(
    "number", ["9223372036854775808", "1000000001", "-1", "nan", "inf", "1e999", "1:30", "0x10", "true", ""]
)
def test_a_number_out_of_bounds_names_its_option(run_bertcli: Bertcli, number: str) -> None:
    options = [each for each in numeric_options() if each not in BOUND_BY_THE_MODEL]
    assert len(options) > 25
    for words, option in options:
        code, out, err = run_bertcli(*words.split(), f"{option}={number}")
        assert (code, out) == (2, ""), (words, option)
        assert f"Invalid value for '{option}'" in err


def test_the_bounds_of_options_are_those_of_the_config(run_bertcli: Bertcli) -> None:
    for option in ("--batch-size", "--micro-batch-size"):
        code, _, err = run_bertcli("bench", "step", option, 10**9)
        assert code == 2
        assert f"Invalid value for '{option}'" in err
