"""Numbers, shares and times in short forms."""

from __future__ import annotations

import pytest

from bertcli.system.terminal import duration, number, percent


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (0.0, "0"),
        (3.5, "3.50"),
        (9.996, "10.0"),
        (123.4, "123"),
        (0.01234, "0.0123"),
        (5e-5, "5.00e-5"),
        (-0.5, "-0.500"),
        (999.4, "999"),
        (-999.6, "-1,000"),
        (1234.6, "1,235"),
        (1_174_419, "1,174,419"),
    ],
)
def test_numbers_have_three_significant_digits(value: float | None, shown: str) -> None:
    assert number(value) == shown


def test_shares_and_times_are_short() -> None:
    assert [percent(value) for value in (0.3412, 0.9994, 1.0, None)] == ["34.1%", "99.9%", "100.0%", "–"]
    assert [percent(value) for value in (0.0, 0.0004, 0.9996)] == ["0.0%", "<0.1%", ">99.9%"]
    assert [duration(value) for value in (42.4, 400.0, 11520.0, None)] == ["42 s", "7 min", "3.2 h", "–"]
