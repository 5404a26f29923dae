"""`bertcli serve` as a process: it starts, answers, ends by a signal, and says nothing of any text."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from bertcli.folders.locate import model_names
from bertcli.system.errors import UserError
from tests.warm import Warm


class Running:
    """A server in a process of its own, which has said its address."""

    def __init__(self, *arguments: object, **environment: str) -> None:
        everything = ("serve", *arguments, "--port", 0, "--engine", "bertcli")
        variables = {name: value for name, value in os.environ.items() if name != "BERTCLI_API_KEY"}
        self.process = Warm(*everything, stderr=subprocess.PIPE, env=variables | environment)
        assert self.process.stderr is not None
        self.said: list[str] = []
        for line in self.process.stderr:
            self.said.append(line)
            if address := re.search(r"http://\S+", line):
                self.url = address[0]
                return
        raise AssertionError("".join(self.said))

    def ask(self, text: str, **headers: str) -> Any:
        data = json.dumps({"rows": text}).encode()
        given = {"Content-Type": "application/json"} | headers
        request = urllib.request.Request(f"{self.url}/v1/bertcli/predict", data, given)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return json.load(reply)
        except urllib.error.HTTPError as error:
            with error:  # it holds the connection
                return error.code

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        assert self.process.stderr is not None
        self.said += self.process.stderr
        return self.process.wait(timeout=60)


@contextmanager
def running(*arguments: object, **environment: str) -> Iterator[Running]:
    server = Running(*arguments, **environment)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait(timeout=60)
        assert server.process.stderr is not None
        server.process.stderr.close()


def test_it_answers_and_says_nothing_of_a_text(models: Path) -> None:
    with running(models / "multi-label") as server:
        (answer,) = server.ask("the secret cat")
        assert set(answer["probabilities"]) == {"red", "green", "blue", "gray"}
        assert server.ask("a secret cat", **{"Content-Type": "text/plain"}) == 422
        form = urlencode({"text": "the secret cat", "show": "why"}).encode()
        with urllib.request.urlopen(f"{server.url}/v1/bertcli/page", form, timeout=60) as reply:
            assert b"Which words decided" in reply.read()
        assert server.end() == 0
        assert server.said[0] == "multi-label: predict; computed by bertcli on cpu\n"
        assert "without a key" in server.said[1]
        assert len(server.said) == 3
        assert "secret" not in "".join(server.said)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_accepted_requests_end(models: Path, number: signal.Signals) -> None:
    with running(f"m={models / 'multi-label'}") as server:
        server.ask("a cat")
        host, port = server.url.removeprefix("http://").split(":")
        connections = [socket.create_connection((host, int(port)), timeout=60) for _ in range(16)]
        body = json.dumps({"rows": ["the cat sat on it"] * 50}).encode()
        head = b"POST /v1/bertcli/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for connection in connections:
            connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        answers: list[bytes] = []
        threads = [threading.Thread(target=lambda c=c: answers.append(c.recv(100))) for c in connections]
        for each in threads:
            each.start()
        assert server.end(number) == 0
        for each in threads:
            each.join(timeout=60)
        for connection in connections:
            connection.close()
        assert [answer[:13] for answer in answers] == [b"HTTP/1.1 200 "] * 16
        assert "ending: requests that are under way are answered" in server.said[2]


def test_the_key_comes_from_the_environment(models: Path) -> None:
    with running(models / "multi-label", "--api-key", BERTCLI_API_KEY="abc") as server:
        assert server.ask("a cat", Authorization="Bearer abc")
        assert server.ask("a cat", Authorization="Bearer abd") == 401
        assert server.end() == 0
        assert "with a key" in server.said[1]
        assert "abc" not in "".join(server.said)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (None, "--api-key: BERTCLI_API_KEY is not set in the environment; put the key there"),
        ("", "--api-key: BERTCLI_API_KEY is not set"),
        ("é", "BERTCLI_API_KEY: expected ASCII characters without blanks at the ends; set another key"),
        (" a", "BERTCLI_API_KEY: expected ASCII characters"),
    ],
)
def test_keys_that_no_client_can_send(
    run_bertcli: Any, models: Path, monkeypatch: pytest.MonkeyPatch, key: str | None, message: str
) -> None:
    monkeypatch.delenv("BERTCLI_API_KEY", raising=False)
    if key is not None:
        monkeypatch.setenv("BERTCLI_API_KEY", key)
    code, _, err = run_bertcli("serve", models / "multi-label", "--api-key")
    assert (code, message in err) == (2, True)


def test_an_address_that_is_taken_or_is_none(run_bertcli: Any, models: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = run_bertcli("serve", models / "multi-label", "--port", port)
        assert (code, "address already in use; name another address: --host, --port" in err) == (2, True)
    code, _, err = run_bertcli("serve", models / "multi-label", "--host", "nowhere.invalid")
    assert (code, "name another address" in err) == (2, True)


def test_models_that_are_not_there(run_bertcli: Any, models: Path, tmp_path: Path) -> None:
    code, _, err = run_bertcli("serve", tmp_path / "none", "--port", 0)
    assert (code, "no such folder" in err) == (2, True)


def test_a_model_has_the_name_of_its_folder_or_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("runs", "other"):  # else it would be an id on the hub
        (tmp_path / folder).mkdir()
    names = ["runs/spam", "runs/b/model", "runs/c/checkpoints/step-00000010", "d/onnx/model.onnx", "org/name"]
    assert list(model_names([*names, "x=runs/spam"])) == ["spam", "b", "c", "d", "org/name", "x"]
    (tmp_path / "a=b").mkdir()
    assert model_names(["a=b"]) == {"a=b": Path("a=b")}
    assert list(model_names(["."])) == [tmp_path.name]
    with pytest.raises(UserError, match="have the same name; give one another: NAME=other/spam"):
        model_names(["runs/spam", "other/spam"])
    with pytest.raises(UserError, match="a path on this machine was expected"):
        model_names(["https://huggingface.co/org/name"])
