"""Fast paths take the place of plain functions, until they are switched off."""

from __future__ import annotations

import pytest
import torch

from bertcli.model.seam import PATHS, is_on, is_on_cpu, plain_path, replace, replaceable


def test_all_paths_are_on_until_they_are_switched_off_and_come_back() -> None:
    assert all(is_on(path) for path in PATHS)
    with plain_path("packing"):
        assert not is_on("packing")
        assert is_on("dropout")
        with plain_path():
            assert not any(is_on(path) for path in PATHS)
        assert is_on("dropout")
        assert not is_on("packing")
    assert is_on("packing")


def test_after_an_error_they_are_on_again() -> None:
    with pytest.raises(KeyError), plain_path():
        raise KeyError
    assert all(is_on(path) for path in PATHS)


def test_paths_for_a_cpu_are_off_elsewhere() -> None:
    assert is_on_cpu("dropout", torch.empty(1))
    assert not is_on_cpu("dropout", torch.empty(1, device="meta"))
    with plain_path("dropout"):
        assert not is_on_cpu("dropout", torch.empty(1))


def test_a_function_is_replaced_where_its_condition_holds() -> None:
    @replaceable
    def double(number: int) -> tuple[str, int]:
        """Plain."""
        return ("plain", number)

    assert double(2) == ("plain", 2)
    replace(double, lambda number: ("fast", number), when=lambda number: number > 1 and is_on("dropout"))
    assert [double(1), double(2)] == [("plain", 1), ("fast", 2)]
    assert double.__doc__ == "Plain."
    with plain_path():
        assert double(2) == ("plain", 2)
