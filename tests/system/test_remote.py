"""Files elsewhere: what a name means, how a broken connection is taken up again, and what is told."""

from __future__ import annotations

import hashlib
import io
import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.files import list_files
from bertcli.system import remote
from bertcli.system.errors import UserError
from bertcli.system.remote import find, find_file
from bertcli.system.urls import Unreachable, check_url, refuse_elsewhere
from bertcli.tasks.files import find_labeled_file
from tests.servers import WebServer, forget_connections, s3_server, web_server

pytest.importorskip("aiohttp")
pytest.importorskip("s3fs")

DATA = bytes(range(256)) * 400


@pytest.fixture
def web(monkeypatch) -> Iterator[WebServer]:
    monkeypatch.setattr(remote, "PAUSES", (0.0, 0.0, 0.0))
    with web_server({"/a.bin": DATA}) as server:
        yield server


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    with s3_server("books") as client:
        yield client


TREE = ("a/x.txt", "a/y.txt.gz", "a-b/x.txt", "a/.hidden/z.txt", "a/c/.z.txt", "a/c/d.txt", "top.txt")


@pytest.mark.parametrize(
    "name", ["", "/", "/a", "/*", "/*.txt", "/a/*", "/**", "/**/*.txt", "/a*/x.txt", "/top.txt"]
)
def test_folders_and_patterns_mean_what_they_mean_locally(s3: Any, tmp_path: Path, name: str) -> None:
    for path in TREE:
        s3.put_object(Bucket="books", Key=path, Body=path.encode())
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(path)
    local, found = (
        [(file.name.removeprefix(top), file.size, file.listed) for file in list_files([f"{top}{name}"])]
        for top in (str(tmp_path), "s3://books")
    )
    assert found == local


def test_a_file_of_s3_is_read_in_the_version_in_which_it_was_found(s3: Any) -> None:
    s3.put_object(Bucket="books", Key="version.bin", Body=DATA)
    path = find_file("s3://books/version.bin")
    assert path.open().read() == DATA
    s3.put_object(Bucket="books", Key="version.bin", Body=DATA[::-1])
    with pytest.raises(UserError, match=r"version\.bin: the file changed while it was read; run"):
        path.open().read()
    assert find_file(str(path)).stat().st_mtime_ns != path.stat().st_mtime_ns
    assert find_file(str(path)).open().read() == DATA[::-1]


def test_without_credentials_s3_says_where_they_are_looked_for(s3: Any, monkeypatch) -> None:
    s3.put_object(Bucket="books", Key="top.txt", Body=b"text")
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(key)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    forget_connections()
    with pytest.raises(Unreachable, match=r"^s3://books/top\.txt: may not be read .*: AWS_ACCESS_KEY_ID"):
        find("s3://books/top.txt")
    forget_connections()


def hub_of(files: dict[str, bytes]) -> type:
    """A class that stands for the file system of the hub, and holds these files."""
    from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

    class Opened(AbstractBufferedFile):
        def _fetch_range(self, start: int, end: int) -> bytes:
            return files[self.path][start:end]

    class Hub(AbstractFileSystem):
        protocol, cachable = "hf", False

        def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
            below = [key for key in files if key == path or key.startswith(f"{path}/")]
            if not below:
                raise FileNotFoundError(path)
            depth = path.count("/") + 2
            names = {key if key == path else "/".join(key.split("/")[:depth]) for key in below}
            return [
                {"name": name, "type": "file", "size": len(files[name]), "blob_id": str(hash(files[name]))}
                if name in files
                else {"name": name, "type": "directory", "size": 0}
                for name in sorted(names)
            ]

        def open(self, path: str, *args: Any, **kwargs: Any) -> Any:
            return Opened(self, path, **kwargs)

    return Hub


def test_a_data_set_of_the_hub_is_a_folder(monkeypatch) -> None:
    from fsspec.registry import _registry

    files = {"datasets/me/books/b/2.txt": b"two", "datasets/me/books/a.txt": b"one"}
    monkeypatch.setitem(_registry, "hf", hub_of(files))
    found = find("hf://datasets/me/books")
    assert [str(path) for path in found] == ["hf://datasets/me/books/a.txt", "hf://datasets/me/books/b/2.txt"]
    assert [path.open().read() for path in found] == [b"one", b"two"]
    with pytest.raises(Unreachable, match=r"^hf://datasets/me/none: no such file or folder; .* HF_TOKEN"):
        find("hf://datasets/me/none")
    with pytest.raises(Unreachable, match=r"^hf://me/books: .* \(a data set is hf://datasets/USER/NAME\);"):
        find("hf://me/books")
    with pytest.raises(UserError, match="is no single file; name the file in it"):
        find_file("hf://datasets/me/books")


@pytest.mark.parametrize("place", [0, 1, 65_535, 65_536, 65_537, 80_000, len(DATA) - 1])
def test_reading_goes_on_where_a_connection_broke_off(web: WebServer, place: int) -> None:
    path = find_file(f"{web.url}/a.bin")
    web.breaks = [place, place]
    file = path.open()
    assert b"".join(iter(lambda: file.read(1000), b"")) == DATA
    assert web.breaks == []


def test_a_part_in_the_middle_is_read_alone(web: WebServer) -> None:
    file = find_file(f"{web.url}/a.bin").open()
    file.seek(-300, io.SEEK_END)
    assert file.read(100) == DATA[-300:-200]
    assert web.sent == 300


def test_a_file_is_hashed_while_it_is_read(web: WebServer) -> None:
    web.files["/hashed.bin"] = DATA[1:]
    path = find_file(f"{web.url}/hashed.bin")
    path.open().read()
    before = web.sent
    assert path.sha256() == hashlib.sha256(DATA[1:]).hexdigest()
    assert web.sent == before == len(DATA) - 1


def test_a_connection_that_stays_broken_is_told_with_the_place(web: WebServer) -> None:
    path = find_file(f"{web.url}/a.bin")
    web.breaks = [70_000, -1]
    with pytest.raises(
        Unreachable,
        match=r"a\.bin: cannot be read: .* broke off at byte 65,536 of 102,400, and 3 new tries failed\. Run",
    ):
        path.open().read()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/none.txt", 404, r"none\.txt: no such file or folder; without credentials .*: ~/\.netrc$"),
        ("/a.bin", 403, r"a\.bin: may not be read with the credentials at hand; looked for: ~/\.netrc$"),
        ("/a.bin", 401, r"a\.bin: may not be read"),
        ("/a.bin", 503, r"a\.bin: cannot be read: the server answered 503 \(Service Unavailable\); check"),
        ("/", 200, r"/: a web server has no list of its files; name each file by its own URL"),
        ("/*.bin", 200, r"/\*\.bin: a web server has no list"),
    ],
)
def test_each_refusal_has_its_message(web: WebServer, path: str, status: int, message: str) -> None:
    web.refused = {path: status}
    with pytest.raises(UserError, match=message):
        find(f"{web.url}{path}")


def test_a_server_without_parts_is_told(web: WebServer) -> None:
    web.has_parts = False
    with pytest.raises(Unreachable, match=r"a\.bin: the server gives no parts of a file, only all"):
        find_file(f"{web.url}/a.bin").open().read()


def test_a_machine_without_network_is_told() -> None:
    url = f"http://127.0.0.1:{free_port()}/a.txt"
    with pytest.raises(
        Unreachable,
        match=rf"^{url}: cannot be read: Cannot connect to host [\d.:]+ \[.*\]; check the URL and",
    ):
        find(url)


def test_a_web_page_in_place_of_a_file_is_told(web: WebServer) -> None:
    for path in ("/blob/a.csv", "/page.html"):
        web.files[path], web.types[path] = b"<html></html>", "text/html; charset=utf-8"
    with pytest.raises(Unreachable, match=r"/blob/a\.csv: the server sends a web page, not a file; give"):
        find(f"{web.url}/blob/a.csv")
    assert find_file(f"{web.url}/page.html").open().read() == b"<html></html>"


def test_a_missing_package_is_told(monkeypatch) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == "gcsfs"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    with pytest.raises(Unreachable, match=r"from gs:// needs more packages: pip install 'bertcli\[remote\]'"):
        find("gs://books/a.txt")


SECRETS = [
    "https://me:hunter2@example.org/a.txt",
    "https://me:SE/hunter2@example.org/a.txt",
    "s3://AKIA:SE/hunter2@books/a.txt",
    "https://me:hunter2/a.txt",
    "https://example.org/a.txt?X-Amz-Signature=hunter2",
    "https://example.org/a.txt#hunter2",
    "s3://books/a.txt?token=hunter2",
]
UNREAD = [
    ("ftp://me:hunter2@example.org/a.txt", r"^ftp://\.\.\.: URLs of this kind are not read; those of s3"),
    ("HTTPS://example.org/a.txt", r"^HTTPS://example\.org/a\.txt: URLs of this kind are not read"),
    ("file:///home/a.txt", r"file:///home/a\.txt: .* Name a file on this machine by its path$"),
    ("s3://", r"^s3://: the server or bucket is missing; expected s3://PLACE/FILE$"),
    ("http:///a.txt", r"^http:///a\.txt: the server or bucket is missing"),
    ("http:///a.txt?token=hunter2", r"^http://\.\.\.: the server or bucket is missing"),
    ("https:/me:hunter2@example.org/a.txt", r"^https:/\.\.\.: URLs of this kind are not read"),
    ("cache::https://me:hunter2@example.org/a", r"^cache::https://\.\.\.: URLs of this kind are not read"),
]


@pytest.mark.parametrize("name", SECRETS)
def test_a_name_with_a_secret_is_refused_and_never_shown(name: str, tmp_path: Path) -> None:
    for key, value in (("files", name), ("general", name), ("encodings", {name: "latin-1"})):
        config = {"output_dir": str(tmp_path / "run"), "corpus": {"files": "classics", key: value}}
        with pytest.raises(UserError, match=r"stored with the run") as raised:
            check_config(PretrainConfig, config, "config.yaml")
        assert "hunter2" not in str(raised.value)
    for read in (find, find_file):
        with pytest.raises(UserError) as raised:
            read(name)
        assert "hunter2" not in str(raised.value)


CLEAN = "s3://b/a?.txt s3://b/a-?/x=de/*.txt hf://datasets/me/b@main/a.txt https://a.org:80/a@b.txt a?b=c#d"


@pytest.mark.parametrize("name", CLEAN.split())
def test_names_without_secrets_pass(name: str) -> None:
    assert check_url(name) == name


@pytest.mark.parametrize(("name", "message"), UNREAD)
def test_a_url_that_means_nothing_here_is_refused(name: str, message: str) -> None:
    for read in (lambda: list_files([name]), lambda: find_labeled_file(name)):
        with pytest.raises(UserError, match=message) as raised:
            read()
        assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("s3://books/run", r"^s3://books/run: a path on this machine was expected; .* may be URLs$"),
        ("s3:/books/run", r"^s3://books/run: a path"),  # as `Path` has it
        ("https://me:hunter2@hf.co/org/bert", r"^https://\.\.\.: a path .* hub has the name org/model$"),
    ],
)
def test_what_is_written_or_loaded_is_on_this_machine(name: str, message: str, tmp_path: Path) -> None:
    config = {"output_dir": str(tmp_path / "run"), "corpus": {"files": "classics"}}
    others = (
        {"output_dir": name},
        {"corpus": {"files": "classics", "store": name}},
        {"tokenizer": {"path": name}},
    )
    for other in (*others, {"model": {"init_from": name}}):
        with pytest.raises(UserError, match=message.removeprefix("^").removesuffix("$")):
            check_config(PretrainConfig, config | other, "config.yaml")
    with pytest.raises(UserError, match=message) as raised:
        refuse_elsewhere(name)
    assert "hunter2" not in str(raised.value)


def test_a_signed_address_behind_a_redirection_is_never_shown(web: WebServer) -> None:
    web.refused = {"/a.bin": f"{web.url}/signed.bin?X-Amz-Signature=hunter2", "/signed.bin": 500}
    with pytest.raises(Unreachable) as raised:
        find(f"{web.url}/a.bin")
    assert re.search(r"a\.bin: cannot be read: the server answered 500", str(raised.value))
    assert "hunter2" not in str(raised.value)
