"""The environment that torchrun makes, and every way in which it can be wrong."""

from __future__ import annotations

import socket

import pytest

from bertcli.system.errors import UserError
from bertcli.training import ranks
from bertcli.training import rendezvous as environment

GOOD = {"WORLD_SIZE": "2", "RANK": "1", "LOCAL_RANK": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


def test_what_torchrun_sets_is_good(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in GOOD.items():
        monkeypatch.setenv(name, value)
    environment.check(2)
    assert environment.read("RANK", 0) == 1


@pytest.mark.parametrize("size", ["", " ", "1"])
def test_one_process_or_none_named_is_one(monkeypatch: pytest.MonkeyPatch, size: str) -> None:
    monkeypatch.setenv("WORLD_SIZE", size)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "")
    with ranks.joined():
        assert (ranks.num_ranks(), ranks.num_local_ranks()) == (1, 1)
        assert ranks.after_restart(resume=False, overwrite=True) == (False, True)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "WORLD_SIZE",
            "two",
            "WORLD_SIZE='two' in the environment: expected an integer of 1 .* unset WORLD",
        ),
        ("WORLD_SIZE", "0", "WORLD_SIZE='0'"),
        ("WORLD_SIZE", "-2", "WORLD_SIZE='-2'"),
        ("RANK", "first", "RANK='first'"),
        ("RANK", "", "WORLD_SIZE=2 in the environment, but not RANK: .* unset WORLD_SIZE"),
        ("RANK", "2", "RANK=2 in the environment: WORLD_SIZE=2 has no such rank"),
        ("LOCAL_RANK", "x", "LOCAL_RANK='x'"),
        ("MASTER_ADDR", "", "but not MASTER_ADDR"),
        ("MASTER_PORT", "http", "MASTER_PORT='http'"),
        ("WORLD_SIZE", "9" * 5000, "WORLD_SIZE='9999"),
        ("MASTER_PORT", "99999", "MASTER_PORT=99999 .* at most 65535"),
    ],
)
def test_junk_is_one_message(monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str) -> None:
    for each, good in GOOD.items():
        monkeypatch.setenv(each, good)
    monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=message), ranks.joined():
        pass


def test_ranks_that_cannot_meet_are_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for name, value in (GOOD | {"RANK": "0", "LOCAL_RANK": "0", "MASTER_PORT": str(port)}).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(UserError, match=rf"could not meet at localhost:{port}"), ranks.joined():
            pass
