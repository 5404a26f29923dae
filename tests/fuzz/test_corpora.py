"""Corpus files of any bytes, in any format and encoding: a store of them, or one message."""

from __future__ import annotations

import encodings.aliases
import gzip
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as parquet
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from bertcli.batches.share import BatchSizes
from bertcli.batches.stream import BatchStream
from bertcli.corpus.build import prepare_store
from bertcli.corpus.files import corpus_files, list_files
from bertcli.corpus.sample import sample_paragraphs
from bertcli.corpus.token_store import OpenStore
from bertcli.tokenizer.train import Training, train_tokenizer
from tests.decided import data_config
from tests.fuzz.good import TEXT, good_tokenizer, store_config
from tests.fuzz.guard import endure, scratch
from tests.fuzz.mutations import as_json, damaged, fuzzed, json_files, place, put

ODD_TEXT = (
    *(
        "[MASK] [SEP] [PAD]",
        "\0",
        "\u202eright to left\u202c",
        "שלום עולם. مرحبا!",
        "😀👩‍👩‍👧‍👦",
        "\ufeff",
        "\u2028\u2029",
    ),
    *(
        "e\u0301" * 50,
        "\u0300" * 300,
        "\U000e0001",
        "\x1b[31m",
        "a" * 5000,
        "." * 3000,
        "東京" * 40,
        "\r\n",
        "\x0c\x85",
    ),
    *(
        "x " * 2000,
        "\ufffe\uffff",
        "ß" * 10,
        "İ",
        "##ing ##",
        "http://a.b/c?d=e#f" * 20,
        "A. B. C. D. " * 100,
    ),
)
texts = (st.sampled_from(ODD_TEXT) | st.text(max_size=30) | st.sampled_from(TEXT.split("\n"))).map(
    lambda text: text.encode("utf-8", "replace")
)
text_files = st.lists(texts, max_size=12).map(b"\n".join) | damaged(TEXT.encode()) | st.binary(max_size=200)
jsonl_files = st.lists(json_files({"text": TEXT, "id": 7}), min_size=1, max_size=4).map(b"\n".join)
ENCODINGS = sorted(
    {*encodings.aliases.aliases.values(), "utf-8-sig", "utf_7", "idna", "punycode", "undefined"}
)
odd_names = st.sampled_from(["", " ", "a" * 300, "é", "../x", "utf-8 ", "rot13", "base64"])


def parquet_file(rows: list[Any]) -> bytes:
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.table({"text": rows}), sink)
    return sink.getvalue().to_pybytes()


PARQUET = parquet_file([TEXT, "Two. Three.", None])


def use(content: bytes | None, name: str, **corpus: Any) -> None:
    """Build the store, draw a batch from it, train a vocabulary on the text."""
    good_tokenizer()  # made outside of what is watched
    with scratch() as folder:
        put(folder / name, content)
        config = endure("config", folder, lambda: store_config(folder / name, folder / "run", **corpus))
        if config is None:
            return

        def prepare() -> OpenStore:
            return prepare_store(config, lambda line: None, processes=0)

        store = endure(f"corpus {config.corpus.format}", folder, prepare)
        if store is None:
            return

        def batches() -> None:
            for objective in ("mlm", "mlm+nsp"):
                data = data_config(objective=objective, max_length=16)
                BatchStream(store.train, store.tokenizer, data, 0, BatchSizes(3))[5]

        def vocabulary() -> None:
            texts = sample_paragraphs(corpus_files(config.corpus), config.corpus, [1.0])
            train_tokenizer(texts, 200, training=Training(spool_folder=folder))

        endure("corpus batches", folder, batches)
        endure("corpus vocabulary", folder, vocabulary)


@fuzzed
@example(content=b"\0" * 100, document="file")
@example(content="\n\n".join(ODD_TEXT).encode(), document="blank-line")
@given(place(text_files), st.sampled_from(["blank-line", "file"]))
def test_text(content: bytes | None, document: str) -> None:
    use(content, "a.txt", document=document, join_lines=document == "file")


@fuzzed
@given(text_files)
def test_sentences(content: bytes) -> None:
    use(content, "a.txt", format="sentences")


@fuzzed
@example(content=b'{"text": "\\ud83d half an emoji"}')
@example(content=b"[" * 100_000)
@example(content=b'{"text": ' + b"9" * 5000 + b"}")
@given(jsonl_files)
def test_jsonl(content: bytes) -> None:
    use(content, "a.jsonl", format="jsonl")


@fuzzed
@example(content=PARQUET.replace(TEXT.encode()[:1], b"\xd4", 1))
@given(
    damaged(PARQUET)
    | st.lists(st.text() | st.none(), max_size=4).map(lambda rows: parquet_file([*rows, "A."]))
)
def test_parquet(content: bytes) -> None:
    use(content, "a.parquet", format="parquet")


@fuzzed
@given(damaged(gzip.compress(TEXT.encode())) | st.binary(max_size=50))
def test_gzip(content: bytes) -> None:
    use(content, "a.txt.gz")


@fuzzed
@given(damaged(zstandard.compress(TEXT.encode())) | st.binary(max_size=50))
def test_zstandard(content: bytes) -> None:
    use(content, "a.txt.zst")


@fuzzed
@example(content=b"abc", encoding="undefined")
@example(content=b"[MASK] [SEP] [PAD]", encoding="utf_16")
@example(content=b"xn--\xff.a", encoding="idna")
@example(content=b"\\ud800 \\q", encoding="unicode_escape")
@example(content=b"+2AA-", encoding="utf_7")
@given(text_files, st.sampled_from(ENCODINGS) | odd_names)
def test_encodings(content: bytes, encoding: str) -> None:
    use(content, "a.txt", encoding=encoding)


@fuzzed
@given(st.sampled_from(ODD_TEXT), odd_names)
def test_names_of_keys_and_languages(text: str, name: str) -> None:
    content = as_json({"text": text}).encode()
    use(content, "a.jsonl", format="jsonl", text_key=name)
    use(content, "a.jsonl", language=name)


@fuzzed
@given(odd_names | st.text(alphabet="a.*?[]!-{}~é", max_size=8))
def test_names_of_files(name: str) -> None:
    with scratch() as folder:
        inner = folder / "a" / "b" / "c" / "d"  # `..` shall not lead to what else the machine keeps
        inner.mkdir(parents=True)
        (inner / "a.txt").touch()
        endure("corpus names", folder, lambda: list_files([f"{inner}/{name}"]))


def test_a_line_of_100_mb() -> None:
    with scratch() as folder:
        (folder / "a.txt").touch()
        with open(folder / "a.txt", "r+b") as file:
            file.truncate(100_000_000)
        config = store_config(folder / "a.txt", folder / "run")
        refused = endure("corpus text", folder, lambda: prepare_store(config, lambda line: None))
        assert refused is None
