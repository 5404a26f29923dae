"""The hub is never called: `snapshot_download` is a function of the test."""

import contextlib
import fnmatch
import shutil
import socket
import threading

import huggingface_hub
import pytest
from huggingface_hub import close_session
from huggingface_hub.errors import LocalEntryNotFoundError, OfflineModeIsEnabled

from bertcli.folders.locate import is_hub_id, resolve_model
from bertcli.system.errors import UserError
from tests.folders.folders import rewrite, saved_model


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A model's files on the hub, and the calls that brought some of them here."""
    remote, cache, calls = tmp_path / "remote", tmp_path / "cache", []
    saved_model(remote)
    legacy = ("added_tokens.json", "special_tokens_map.json")
    for name in ("tf_model.h5", "onnx/model.onnx", "1_Pooling/config.json", "README.md", *legacy):
        (remote / name).parent.mkdir(exist_ok=True)
        (remote / name).write_text("{}")

    def snapshot_download(repo_id, allow_patterns):
        calls.append((repo_id, allow_patterns))
        for path in sorted(remote.rglob("*")):
            name = str(path.relative_to(remote))
            if path.is_file() and any(fnmatch.fnmatch(name, pattern) for pattern in allow_patterns):
                (cache / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, cache / name)
        return str(cache)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    monkeypatch.chdir(tmp_path)
    return remote, cache, calls


def names(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


SMALL = {"config.json", "vocab.txt", "tokenizer.json", "tokenizer_config.json", "1_Pooling/config.json"} | {
    "added_tokens.json",
    "special_tokens_map.json",
}


def test_a_model_of_the_hub_with_the_files_that_are_read_and_no_other(hub):
    _, cache, calls = hub
    assert resolve_model("some-org/some.model_1") == cache
    assert names(cache) == SMALL | {"model.safetensors"}
    assert [name for name, _ in calls] == ["some-org/some.model_1"]


def test_the_older_weights_where_there_are_no_others(hub):
    remote, cache, calls = hub
    rewrite(remote, lambda weights: weights, to="pytorch_model.bin")
    assert resolve_model("some-org/model") == cache
    assert names(cache) == SMALL | {"pytorch_model.bin"}
    assert len(calls) == 2


def test_what_is_here_is_not_looked_for_on_the_hub(hub, tmp_path):
    calls = hub[2]
    saved_model(tmp_path / "runs" / "mine" / "model")
    assert resolve_model("runs/mine").resolve() == tmp_path / "runs" / "mine" / "model"
    with pytest.raises(
        UserError, match=r"runs/mime: no such folder\. MODEL is a run folder, .* \(org/name\)"
    ):
        resolve_model("runs/mime")
    assert calls == []


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (LocalEntryNotFoundError("Got: ConnectError\nAn error happened"), "Got: ConnectError"),
        (OfflineModeIsEnabled("offline mode is enabled."), "offline mode is enabled"),
        (OSError(), "OSError"),
        (
            type("ProxyError", (Exception,), {})("407 Proxy Authentication Required"),
            "407 Proxy Authentication Required",
        ),
        (type("TooManyRedirects", (Exception,), {})("Exceeded maximum"), "Exceeded maximum"),
        (ValueError("Repo id must be"), "Repo id must be"),
    ],
)
def test_a_hub_that_is_out_of_reach(hub, monkeypatch, capsys, error, reason):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    monkeypatch.setattr("bertcli.folders.locate.getproxies", dict)
    with pytest.raises(UserError) as caught:
        resolve_model("some-org/model")
    assert capsys.readouterr().err.startswith("some-org/model: looking for it on the Hugging Face hub")
    assert str(caught.value) == (
        f"some-org/model: no such local folder, and not available from the Hugging Face hub: {reason}. "
        f"Give a folder; or download the model on a machine with a network (hf download some-org/model "
        f"--local-dir FOLDER), copy that folder here, and give it."
    )


SILENT, REDIRECT, PROXY, CUT = (
    None,
    b"302 Found\r\nLocation: /again",
    b"407 Proxy Authentication Required",
    b"200 OK",
)


@contextlib.contextmanager
def serving(answer):
    """A real server on this machine that gives this answer; its address and its connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections = []

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    connections.append(connection)  # stays open where nothing is answered
                    if answer is not SILENT:
                        connection.recv(65_536)
                        length = b"99" if answer is CUT else b"1"
                        body = b"\r\nContent-Length: " + length + b"\r\nConnection: close\r\n\r\n{"
                        connection.sendall(b"HTTP/1.1 " + answer + body if answer else b"nonsense")
                        connection.close()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", connections
        for connection in connections:
            connection.close()


@pytest.fixture
def short_waiting(tmp_path, monkeypatch):
    """Real requests that wait for a moment, without a cache and without a proxy."""
    monkeypatch.setattr("bertcli.folders.locate.SECONDS", 0.2)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.chdir(tmp_path)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    close_session()
    yield
    close_session()


@pytest.mark.parametrize(
    "answer",
    [SILENT, REDIRECT, PROXY, CUT, b"", b"403 Forbidden", b"404 Not Found", b"503 Service Unavailable"],
)
def test_a_hub_that_answers_wrongly_or_not_at_all(short_waiting, monkeypatch, answer):
    """It says nothing, sends elsewhere for ever, or half of an answer."""
    with serving(answer) as (address, connections):
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        monkeypatch.setattr("huggingface_hub.hf_api.api.endpoint", address)
        with pytest.raises(
            UserError, match=r"org/model: no such local folder, and not available from the"
        ) as caught:
            resolve_model("org/model")
        assert connections
    assert "503" in str(caught.value) or answer != b"503 Service Unavailable"


@pytest.mark.parametrize("answer", [SILENT, PROXY])
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "HTTP_PROXY"])
def test_a_proxy_that_refuses_or_says_nothing(short_waiting, monkeypatch, name, answer):
    hub = name.partition("_")[0].lower() + "://hub.example"
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub)
    monkeypatch.setattr("huggingface_hub.hf_api.api.endpoint", hub)
    with serving(answer) as (address, connections):
        monkeypatch.setenv(name, address)
        with pytest.raises(UserError, match="not available from the Hugging Face hub: ") as caught:
            resolve_model("org/model")
        assert connections
    reason = "407 Proxy Authentication Required" if answer is PROXY else "timed out"
    assert reason in str(caught.value)
    assert "goes through a proxy (HTTP_PROXY, HTTPS_PROXY" in str(caught.value)


def test_a_model_that_is_no_bert_folder_says_what_it_lacks(hub):
    (hub[0] / "vocab.txt").unlink()
    (hub[0] / "tokenizer.json").unlink()
    with pytest.raises(UserError, match="missing: a vocabulary"):
        resolve_model("some-org/model")


@pytest.mark.parametrize("name", ["model", "a/b/c", "/tmp/model", "../elsewhere/model", "org/a model", "./x"])
def test_what_is_no_id(name):
    assert not is_hub_id(name)


@pytest.mark.parametrize(
    "vocabulary",
    [("vocab.json", "merges.txt"), ("spm.model",), ("spiece.model",), ("sentencepiece.bpe.model",)],
)
def test_vocabularies_of_other_families_are_fetched(hub, vocabulary):
    remote, cache, _ = hub
    for name in vocabulary:
        (remote / name).write_text("a vocabulary")
    resolve_model("some-org/model")
    assert names(cache) >= set(vocabulary)
