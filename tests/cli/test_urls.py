"""URLs on the command line: a run on them is the run on the same files here, and no credentials are in it."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bertcli.advice.init.files import find_files
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import load_either_config
from bertcli.config.schema import PretrainConfig
from tests.cli.test_init_labeled import spam
from tests.finetunes import rows_but_times, run, spam_config, spam_files
from tests.servers import WebServer, forget_connections, s3_server, web_server
from tests.small_runs import run_cli, small_config, write_config, write_corpus

pytest.importorskip("aiohttp")
pytest.importorskip("s3fs")

SECRET = "hunter2hunter2"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files on this machine, and a model."""
    folder = spam_files(tmp_path_factory.mktemp("here"))
    write_corpus(folder / "corpus.txt", documents=20)
    spam(folder / "test.tsv")
    return folder


@pytest.fixture(scope="module")
def web(here: Path) -> Iterator[WebServer]:
    files = {f"/{path.name}": path.read_bytes() for path in here.iterdir() if path.is_file()}
    cut = gzip.compress(files["/train.tsv"])[:-100]
    with web_server({**files, "/empty.txt": b"", "/cut.tsv.gz": cut, "/cut.txt.gz": cut}) as server:
        yield server


@pytest.fixture(scope="module")
def s3(here: Path) -> Iterator[Any]:
    with s3_server("labels", SECRET) as client:
        for path in filter(Path.is_file, here.iterdir()):
            client.put_object(Bucket="labels", Key=path.name, Body=path.read_bytes())
        yield client


@pytest.fixture(scope="module")
def said(here: Path, web: WebServer, s3: Any) -> str:
    """What the commands of a run on URLs print; their files are in `here/run` and `here/corpus`."""
    task = spam_config(here)["task"] | {"train": "s3://labels/train.tsv", "dev": f"{web.url}/dev.tsv"}
    labels = write_config(here / "labels.yaml", spam_config(here, task=task, logging={"report": True}))
    corpus = {"files": ["s3://labels/corpus.txt"], "store": None}
    text = write_config(here / "text.yaml", small_config(here / "x", here / "corpus", corpus=corpus))
    rows, answers = f"{web.url}/test.tsv", here / "corpus" / "answers.csv"
    commands = [
        *(("check-data", labels), ("finetune", labels), ("report", here / "run")),
        *(("prepare", text), ("check-data", text)),
        ("predict", here / "run", "--input", rows, "--output", answers),
        ("evaluate", here / "run", "--data", "s3://labels/test.tsv"),
    ]
    printed = ""
    for command in commands:
        done = run_cli(*command)
        assert done.returncode == 0, done.stderr
        printed += done.stdout + done.stderr
    return printed


def test_a_run_on_urls_is_the_run_on_the_same_files(here: Path, said: str, tmp_path: Path) -> None:
    assert "s3://labels/train.tsv" in (here / "run" / "config.yaml").read_text()
    run(spam_config(here, output_dir=str(tmp_path / "local")))
    assert rows_but_times(tmp_path / "local" / "metrics.jsonl") == rows_but_times(
        here / "run" / "metrics.jsonl"
    )
    run_cli("predict", here / "run", "--input", here / "test.tsv", "--output", tmp_path / "answers.csv")
    assert (tmp_path / "answers.csv").read_bytes() == (here / "corpus" / "answers.csv").read_bytes()


def test_no_file_and_no_line_of_a_run_holds_credentials(here: Path, said: str) -> None:
    files = [path for part in ("run", "corpus") for path in (here / part).rglob("*") if path.is_file()]
    names = {path.name for path in files}
    assert {"config.yaml", "metrics.jsonl", "README.md", "report.html", "manifest.json", ".lock"} <= names
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []
    assert SECRET not in said


@pytest.mark.parametrize("name", ["s3://labels/train.tsv", "s3://none/train.tsv", "s3://labels/none.tsv"])
@pytest.mark.parametrize("is_known", [True, False])
def test_no_message_holds_credentials(
    run_bertcli, s3: Any, tmp_path: Path, monkeypatch, name: str, is_known: bool
) -> None:
    if not is_known:  # the server then refuses all
        monkeypatch.setattr("moto.settings.INITIAL_NO_AUTH_ACTION_COUNT", 0)
    forget_connections()
    code, out, err = run_bertcli("init", name, "--output", tmp_path / "a.yaml")
    forget_connections()
    expected = (
        "no such file" if is_known else "may not be read with the credentials at hand; looked for: AWS_"
    )
    assert code == (0 if is_known and name == "s3://labels/train.tsv" else 2)
    assert code == 0 or err.startswith(f"error: {name}: {expected}")
    assert SECRET not in out + err


@pytest.mark.usefixtures("init_here")
def test_init_takes_labeled_files_by_url(run_bertcli, web: WebServer, here: Path, tmp_path: Path) -> None:
    names = [f"{web.url}/{name}.tsv" for name in ("train", "dev", "test")]
    code, out, err = run_bertcli("init", *names, "--model", here / "bert")
    assert (code, out) == (0, "bertcli.yaml\n"), err
    assert f"{names[2]} is left for bertcli evaluate\n" in err
    config = load_either_config(tmp_path / "bertcli.yaml")
    assert isinstance(config, FinetuneConfig)
    assert (config.task.train, config.task.dev, config.task.dev_fraction) == (*names[:2], None)
    _, _, err = run_bertcli("init", names[0], "--output", "alone.yaml")
    assert "no file for evaluation was given; this share is" in (tmp_path / "alone.yaml").read_text()


@pytest.mark.usefixtures("init_here")
def test_init_finds_the_files_beside_one_in_a_bucket(run_bertcli, s3: Any, tmp_path: Path) -> None:
    code, _, err = run_bertcli("init", "s3://labels/train.tsv")
    assert code == 0, err
    assert "s3://labels/test.tsv is left for bertcli evaluate\n" in err
    config = load_either_config(tmp_path / "bertcli.yaml")
    assert isinstance(config, FinetuneConfig)
    assert (config.task.dev, config.output_dir) == ("s3://labels/dev.tsv", "runs/labels")


@pytest.mark.usefixtures("init_here")
def test_init_takes_a_corpus_by_url(run_bertcli, web: WebServer, tmp_path: Path) -> None:
    url = f"{web.url}/corpus.txt"
    code, _, err = run_bertcli("init", url, "--minutes", "0.1")
    assert code == 0, err
    assert "found: 1 file, 0.1 MB of text, 20 documents" in err
    config = load_either_config(tmp_path / "bertcli.yaml")
    assert isinstance(config, PretrainConfig)
    assert (config.corpus.files, config.output_dir) == ([url], "runs/corpus")


def test_in_a_bucket_init_names_the_texts_alone(s3: Any) -> None:
    s3.put_object(Bucket="labels", Key="books/a.png", Body=b"\x89PNG\r\n\x1a\n")
    s3.put_object(Bucket="labels", Key="books/old/a.txt", Body=b"It was a dark night.")
    found = find_files(["s3://labels/books/"], Path("bertcli.yaml"))
    assert found.names == ["s3://labels/books/**/*.txt"]
    assert [file.name for file in found.files] == ["s3://labels/books/old/a.txt"]
    assert found.left_out == ["s3://labels/books/a.png: is a PNG picture, not text; leave it out"]


TRUNCATED = "the .gz ends in mid-stream: it is truncated; copy or download it again"
BAD = [
    ("init WEB/", "a web server has no list of its files; name each file by its own URL"),
    ("init WEB/empty.txt", "empty.txt: is empty"),
    ("init WEB/cut.txt.gz", TRUNCATED),
    ("check-data text.yaml --set corpus.files=[WEB/none.txt]", "none.txt: no such file or folder"),
    (
        "check-data text.yaml --set corpus.files=[ftp://a/b.txt]",
        "corpus.files.0: ftp://a/b.txt: URLs of this",
    ),
    ("prepare text.yaml --set output_dir=new --set corpus.files=[WEB/cut.txt.gz]", TRUNCATED),
    ("finetune labels.yaml --set output_dir=new --set task.dev=WEB/cut.tsv.gz", TRUNCATED),
    ("clean text.yaml cleaned --set corpus.files=[WEB/cut.txt.gz]", TRUNCATED),
    ("clean text.yaml s3://labels/new", "s3://labels/new: a path on this machine was expected"),
    ("report s3://labels/run", "s3://labels/run: a path on this machine was expected"),
    ("predict run --input WEB/none.tsv", "none.tsv: no such file or folder"),
    ("predict run --input s3://labels/", "s3://labels/: is no single file; name the file in it"),
    ("evaluate run --data WEB/cut.tsv.gz", TRUNCATED),
    ("evaluate bert --corpus WEB/none.txt", "--corpus: http"),
    ("evaluate bert --corpus ftp://a/b.txt", "--corpus: ftp://a/b.txt: URLs of this kind are not read"),
    ("predict-mask bert --input WEB/none.txt", "none.txt: no such file or folder"),
]


@pytest.mark.usefixtures("said")
@pytest.mark.parametrize(("command", "message"), BAD)
def test_what_cannot_be_read_is_told_in_one_message(
    run_bertcli, web: WebServer, here: Path, monkeypatch, command: str, message: str
) -> None:
    monkeypatch.chdir(here)
    code, _, err = run_bertcli(*command.replace("WEB", web.url).split())
    [error] = [line for line in err.splitlines() if "error: " in line]
    assert code == 2
    assert message in err[err.index(error) :]
    assert "Traceback" not in err


def test_a_url_in_place_of_a_text_is_told(run_bertcli, here: Path, said: str) -> None:
    url = "https://example.org/test.tsv"
    code, out, err = run_bertcli("predict", here / "run", url)
    assert (code, url in out) == (0, True)
    assert f"{url}: is read as a text; for the rows of a file at this URL: --input {url}\n" in err


def test_a_text_a_line_is_read_by_url(run_bertcli, web: WebServer, here: Path) -> None:
    web.files["/lines.txt"] = b"aa\nbb\n"
    code, out, err = run_bertcli(
        "tokenizer", "encode", "--tokenizer", here / "bert", "--input", f"{web.url}/lines.txt"
    )
    assert (code, out.splitlines()[::2]) == (0, ["[CLS] a ##a [SEP]", "[CLS] b ##b [SEP]"]), err


def test_files_of_this_machine_need_no_library_for_others(here: Path, said: str) -> None:
    program = (
        "import sys\n"
        "from bertcli.cli.main import main\n"
        "from bertcli.system.files import file_hash\n"
        "from bertcli.tasks.files import find_labeled_file\n"
        "file_hash(find_labeled_file('train.tsv'))\n"
        "words = 'check-data text.yaml --set corpus.files=corpus.txt --set output_dir=new'\n"
        "sys.argv = ['bertcli', *words.split()]\n"
        "try:\n    main()\n"
        "except SystemExit as stop:\n    assert not stop.code\n"
        "libraries = {'fsspec', 's3fs', 'gcsfs', 'aiohttp', 'botocore'}\n"
        "assert not libraries & set(sys.modules), libraries & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=here
    )
    assert done.returncode == 0, done.stderr
