"""Tokenizers of all kinds with junk in any of their files: ids, or one message; no abort, no hang."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from sentencepiece import sentencepiece_model_pb2

from bertcli.tokenizer.tokenizer import Tokenizer
from tests.fuzz.good import copy_of, good_tokenizer_of
from tests.fuzz.guard import endure, scratch
from tests.fuzz.mutations import damaged, fuzzed, json_files, place, put
from tests.fuzz.test_models import json_of

TEXTS = ["the cat sat. [MASK] \u00e9 \u00bd \u304b", "", "a" * 50]


def use(model_type: str, slow: bool, name: str, content: bytes | None) -> None:
    good = good_tokenizer_of(model_type, slow)
    with scratch() as folder:
        copy = copy_of(good, folder)
        put(copy / name, content)
        endure(f"tokenizer of {model_type}", folder, lambda: encode(copy))


def encode(folder: Path) -> None:
    tokenizer = Tokenizer.load(folder)
    tokenizer.encode_with_spans(TEXTS)
    tokenizer.decode(tokenizer.encode(TEXTS[0]))


@fuzzed
@given(
    st.sampled_from(["roberta", "deberta", "modernbert", "albert", "deberta-v2", "xlm-roberta", "bert"]),
    st.sampled_from(["tokenizer.json", "tokenizer_config.json", "added_tokens.json"]),
    st.data(),
)
def test_json_files(model_type: str, name: str, data: st.DataObject) -> None:
    good = good_tokenizer_of(model_type, False) / name
    tree = json_of(good) if good.exists() else {"<x>": 405, "[MASK]": 4}
    use(model_type, False, name, data.draw(place(json_files(tree))))


@fuzzed
@given(st.sampled_from(["roberta", "deberta"]), st.sampled_from(["vocab.json", "merges.txt"]), st.data())
def test_byte_level_files(model_type: str, name: str, data: st.DataObject) -> None:
    good = good_tokenizer_of(model_type, True) / name
    strategy = damaged(good.read_bytes()) if name == "merges.txt" else json_files(json_of(good))
    use(model_type, True, name, data.draw(place(strategy)))


def with_charsmap(data: bytes, table: bytes) -> bytes:
    model = sentencepiece_model_pb2.ModelProto()  # pyright: ignore[reportAttributeAccessIssue]
    model.ParseFromString(data)
    model.normalizer_spec.precompiled_charsmap = table
    return model.SerializeToString()


@fuzzed
@example(kind=("albert", "spiece.model"), table=b"\0\0\0\0")
@given(
    st.sampled_from([("albert", "spiece.model"), ("deberta-v2", "spm.model")]),
    st.binary(max_size=60) | st.binary(min_size=64, max_size=64).map(lambda part: b"\0\4\0\0" + part * 16),
)
def test_tables_of_characters(kind: tuple[str, str], table: bytes) -> None:
    good = (good_tokenizer_of(kind[0], True) / kind[1]).read_bytes()
    use(kind[0], True, kind[1], with_charsmap(good, table))


@fuzzed
@given(st.sampled_from([("albert", "spiece.model"), ("deberta-v2", "spm.model")]), st.data())
def test_sentencepiece_files(kind: tuple[str, str], data: st.DataObject) -> None:
    good = (good_tokenizer_of(kind[0], True) / kind[1]).read_bytes()
    use(kind[0], True, kind[1], data.draw(place(damaged(good))))
