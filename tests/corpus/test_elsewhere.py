"""A corpus elsewhere gives the store of the same files here, however often the connection breaks off."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from bertcli.config.section import Decoding
from bertcli.corpus import build
from bertcli.corpus.build import prepare_store
from bertcli.corpus.clean.run import clean_corpus
from bertcli.corpus.documents import read_paragraphs
from bertcli.corpus.engines import Placing
from bertcli.corpus.matching import check_matches
from bertcli.corpus.streams import read_lines
from bertcli.corpus.token_store import open_store
from bertcli.system import remote
from bertcli.system.errors import UserError
from bertcli.tasks.files import find_labeled_file, read_examples
from tests.corpus.builds import contents, make_config, short_chapters, silent
from tests.decided import tokenizer_config
from tests.servers import WebServer, web_server
from tests.tasks.reading import settings

pytest.importorskip("aiohttp")

NAMES = ("a.txt", "b.txt.gz", "c.txt.zst")


@pytest.fixture(scope="module")
def corpus_bytes() -> dict[str, bytes]:
    texts = ["\n\n".join(short_chapters()[number:18:3]).encode() for number in range(3)]
    packed = (texts[0], gzip.compress(texts[1], mtime=0), zstandard.compress(texts[2]))
    return dict(zip(NAMES, packed, strict=True))


@pytest.fixture
def web(monkeypatch, corpus_bytes: dict[str, bytes]) -> Iterator[WebServer]:
    monkeypatch.setattr(remote, "PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(remote, "_LEAST", 1 << 10)
    with web_server({f"/{name}": data for name, data in corpus_bytes.items()}) as server:
        yield server


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory, corpus_bytes: dict[str, bytes]) -> Path:
    """A folder with the corpus and its store."""
    folder = tmp_path_factory.mktemp("local")
    (folder / "corpus").mkdir()
    for name, data in corpus_bytes.items():
        (folder / "corpus" / name).write_bytes(data)
    prepare_store(config(folder, [str(folder / "corpus" / name) for name in NAMES]), silent, processes=0)
    return folder


def config(folder: Path, files: list[str], vocabulary: Path | None = None) -> Any:
    """A config whose vocabulary is given, or trained in a moment."""
    tokenizer = {"vocab_size": 400} if vocabulary is None else {"path": str(vocabulary)}
    return make_config(folder, tokenizer_config(**tokenizer), files=files)


def compared(store: Path) -> dict[str, Any]:
    """The bytes of a store, apart from what names the files and the given vocabulary."""
    files: dict[str, Any] = contents(store)
    manifest = json.loads(files.pop("manifest.json"))
    del manifest["options"], files[".bertcli.json"]
    for source in manifest["sources"]:
        del source["name"]
        for file in source["files"]:
            file["name"], file["mtime_ns"] = Path(file["name"]).name, 0
    return {**files, "manifest": manifest}


def test_a_store_is_the_same_wherever_a_connection_breaks_off(
    web: WebServer, local: Path, tmp_path: Path, corpus_bytes: dict[str, bytes]
) -> None:
    urls, total = [f"{web.url}/{name}" for name in NAMES], sum(map(len, corpus_bytes.values()))
    vocabulary, expected = local / "run" / "store" / "tokenizer", compared(local / "run" / "store")
    for number in range(20):
        web.sent, web.breaks = 0, [total * number // 20, total * number // 20]
        prepare_store(config(tmp_path / str(number), urls, vocabulary), silent, processes=0)
        assert web.breaks == []
        assert compared(tmp_path / str(number) / "run" / "store") == expected


def test_a_build_that_lost_its_connection_goes_on_later(
    web: WebServer, local: Path, tmp_path: Path, corpus_bytes: dict[str, bytes], monkeypatch
) -> None:
    monkeypatch.setattr(build, "JOURNAL_SECONDS", 0.0)
    monkeypatch.setattr("bertcli.corpus.chunks.CHUNK_CHARACTERS", 1500)
    own, lines = config(tmp_path, [f"{web.url}/{name}" for name in NAMES]), list[str]()
    tokenize = build._tokenize

    def cut(*arguments: Any, **options: Any) -> None:
        web.sent, web.breaks = 0, [len(corpus_bytes["a.txt"]) + 2000, -1]
        tokenize(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(build, "_tokenize", cut)
        with pytest.raises(UserError, match=r"b\.txt\.gz: .* broke off at byte 1,024 of .* Run the"):
            prepare_store(own, silent, processes=0)
    web.breaks = []
    prepare_store(own, lines.append, processes=0)
    assert any("resuming the interrupted build" in line for line in lines)
    assert compared(tmp_path / "run" / "store") == compared(local / "run" / "store")


def test_a_store_notices_a_file_that_changed_and_needs_no_network(web: WebServer, tmp_path: Path) -> None:
    own = config(tmp_path, [f"{web.url}/a.txt"])
    prepare_store(own, silent, processes=0)
    manifest = open_store(tmp_path / "run" / "store").manifest
    check_matches(tmp_path / "run" / "store", manifest, own)
    web.refused = {"/a.txt": 503}
    check_matches(tmp_path / "run" / "store", manifest, own)
    web.refused = {}
    web.files["/a.txt"] = web.files["/a.txt"].replace(b"the", b"THE", 1)
    with pytest.raises(UserError, match=r"a\.txt: the file changed; its size is the same"):
        check_matches(tmp_path / "run" / "store", manifest, own)


def test_parquet_is_read_in_parts(web: WebServer, tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"text": short_chapters()[:30]}), tmp_path / "texts.parquet")
    web.files["/texts.parquet"] = (tmp_path / "texts.parquet").read_bytes()
    [path] = remote.find(f"{web.url}/texts.parquet")
    own = make_config(tmp_path, format="parquet").corpus
    assert list(read_paragraphs(path, own)) == list(read_paragraphs(tmp_path / "texts.parquet", own))


def test_a_file_elsewhere_is_read_in_its_own_encoding(web: WebServer, tmp_path: Path) -> None:
    web.files["/old.txt"] = "Fluß\n".encode("cp1252")
    for name in (f"{web.url}/old.txt", f"{web.url}/*.txt"):
        own = make_config(tmp_path, encodings={name: "cp1252"}).corpus
        [path] = remote.find(f"{web.url}/old.txt")
        assert list(read_paragraphs(path, own)) == ["Fluß", None]


def test_a_labeled_file_is_read(web: WebServer) -> None:
    web.files["/train.tsv.gz"] = gzip.compress(b"text\tlabel\nWell done\tgood\nNot at all\tbad\n")
    examples = list(read_examples(find_labeled_file(f"{web.url}/train.tsv.gz"), settings(), labeled=True))
    assert [(each.texts, each.label, each.where.rpartition("/")[2]) for each in examples] == [
        (("Well done",), "good", "train.tsv.gz, line 2"),
        (("Not at all",), "bad", "train.tsv.gz, line 3"),
    ]


def test_a_corpus_elsewhere_is_cleaned_as_a_local_one(web: WebServer, local: Path, tmp_path: Path) -> None:
    texts: list[list[tuple[str, str]]] = []
    for number, top in enumerate((web.url, local / "corpus")):
        own, out = config(tmp_path, [f"{top}/{name}" for name in NAMES]), tmp_path / str(number)
        clean_corpus(own, out, Placing(1, 1), dry_run=False, page=lambda account: "", report=silent)
        lines = read_lines(next((out / "text").glob("*.jsonl.zst")), Decoding())
        texts.append([(each["text"], Path(each["file"]).name) for each in map(json.loads, lines)])
    assert texts[0] == texts[1] != []
