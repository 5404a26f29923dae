from __future__ import annotations

import pytest

from bertcli.advice.bench.probe import KNOWN_DEVICES, known_device
from bertcli.system.errors import UserError


def test_a_device_without_bf16_trains_in_fp16() -> None:
    assert known_device("T4").precision == "fp16"
    assert known_device("t4").rate("fp16") > known_device("t4").rate("fp32")
    assert known_device("t4").rate("bf16") == known_device("t4").fp32
    assert known_device("h200").rate("bf16") > known_device("h200").rate("fp32")


@pytest.mark.parametrize("name", KNOWN_DEVICES)
def test_rates_and_memory_are_in_operations_and_bytes(name: str) -> None:
    device = KNOWN_DEVICES[name]
    assert 1e12 < device.fp32 < device.half < 1e16
    assert 8e9 < device.memory < 1e12


def test_an_unknown_device_names_those_that_are_known() -> None:
    with pytest.raises(UserError, match=r"--device abacus: is unknown; give one of b200, h200"):
        known_device("abacus")
