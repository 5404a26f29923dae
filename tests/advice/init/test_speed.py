from __future__ import annotations

from bertcli.advice.init.fit_pretraining import start_seconds


def test_a_new_process_takes_time_to_start() -> None:
    assert start_seconds("json") > 0
