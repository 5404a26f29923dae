"""Labeled files and files to predict, of every task and format: examples, or one message."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config
from bertcli.config.task import TaskSettings
from bertcli.tasks.data import load_labeled_data
from bertcli.tasks.files import read_examples
from bertcli.tokenizer.tokenizer import Tokenizer
from tests.fuzz.good import good_tokenizer
from tests.fuzz.guard import endure, scratch
from tests.fuzz.mutations import damaged, fuzzed, json_files, place, put
from tests.fuzz.test_corpora import ODD_TEXT, parquet_file

TASKS: dict[str, dict[str, Any]] = {
    "classification": {"text": "text", "label": "label"},
    "regression": {"text": ["text", "other"], "label": "label"},
    "token-classification": {},
    "question-answering": {},
    "multiple-choice": {"text": "text", "choices": "other", "label": "label"},
}
TABLES = ("classification", "regression", "multiple-choice")
ROWS = [
    {"text": f"the cat {number}", "other": "[MASK] ran", "label": str(number % 2)} for number in range(12)
]
CHOICES = [row | {"other": ["yes", "no"]} for row in ROWS]
TAGGED = [{"text": ["the", "cat", str(number)], "label": ["O", "B-x", "I-x"]} for number in range(12)]
CONLL = "-DOCSTART- O\n\nthe O\ncat B-PER\nsat I-PER\n\n# x\na\tS-LOC\ndog O\n"
SQUAD = {
    "version": "1.1",
    "data": [
        {
            "title": "t",
            "paragraphs": [
                {
                    "context": "the cat sat on the mat",
                    "qas": [
                        {"id": "a", "question": "who sat", "answers": [{"text": "cat", "answer_start": 4}]},
                        {"id": "b", "question": "why", "is_impossible": True, "answers": []},
                    ],
                }
            ],
        }
    ],
}


def lines(rows: list[dict[str, Any]]) -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in rows)


def table(separator: str) -> str:
    lines = [list(ROWS[0]), *(list(row.values()) for row in ROWS)]
    return "".join(separator.join(line) + "\n" for line in lines)


cells = st.sampled_from([*ODD_TEXT, '"', '""', 'a"b', "\t", ",", "nan", "inf", "1e999", "-1", "2"]) | st.text(
    max_size=6
)


@st.composite
def tables(draw: st.DrawFn, separator: str) -> bytes:
    if draw(st.booleans()):
        return draw(damaged(table(separator).encode()))
    odd = draw(st.lists(st.lists(cells, min_size=2, max_size=4), min_size=1, max_size=2))
    return (table(separator) + "\n".join(map(separator.join, odd))).encode("utf-8", "replace")


def read(task: str, name: str, content: bytes | None, **keys: Any) -> None:
    tokenizer = Tokenizer.load(good_tokenizer())
    with scratch() as folder:
        put(folder / name, content)
        settings = TaskSettings.model_validate({"type": task} | TASKS[task] | keys)

        def predict() -> int:
            return sum(1 for _ in read_examples(folder / name, settings, labeled=False))

        def train() -> None:
            config = {"train": str(folder / name), "max_length": 16, "type": task, "skip_bad": True}
            checked = check_config(
                FinetuneConfig,
                {"output_dir": "run", "model": "m", "task": config | TASKS[task] | keys},
                "test",
            )
            load_labeled_data(checked, tokenizer, lambda line: None)

        endure(f"labeled {name}: rows", folder, predict)
        endure(f"labeled {name}: all", folder, train)


@fuzzed
@given(st.sampled_from(TABLES), place(tables("\t")), st.sampled_from(["auto", "csv", "none"]))
def test_tsv(task: str, content: bytes | None, quoting: str) -> None:
    read(task, "a.tsv", content, quoting=quoting)


@fuzzed
@given(st.sampled_from(TABLES), tables(","), st.booleans())
def test_csv(task: str, content: bytes, multi_label: bool) -> None:
    read(task, "a.csv", content, multi_label=multi_label and task == "classification")


@fuzzed
@example(task="token-classification", content=b'{"text": ["a", null], "label": ["O", {}]}')
@example(task="classification", content=b'{"text": 1e400, "label": ' + b"9" * 5000 + b"}")
@example(task="classification", content=b'{"text": "a", "label": 1e400}')
@given(
    st.sampled_from([*TABLES, "token-classification", "question-answering"]),
    st.sampled_from([ROWS, CHOICES, TAGGED]).flatmap(
        lambda rows: st.tuples(json_files(rows[0]), st.just(lines(rows))).map(b"\n".join)
    ),
)
def test_jsonl(task: str, content: bytes) -> None:
    keys = {"text": "text", "label": "label"} if task == "token-classification" else {}
    read(task, "a.jsonl", content, **keys)


@fuzzed
@given(
    damaged(CONLL.encode())
    | st.lists(
        st.tuples(cells, st.sampled_from(["O", "B-x", "I-x", "S", "E-", "-", "#", "L-y", ""])).map(" ".join),
        max_size=9,
    ).map(lambda lines: "\n".join(lines).encode("utf-8", "replace"))
)
def test_conll(content: bytes) -> None:
    read("token-classification", "a.conll", content)


@fuzzed
@given(place(json_files(SQUAD)))
def test_squad(content: bytes | None) -> None:
    read("question-answering", "a.json", content)


@fuzzed
@given(
    st.sampled_from([*TABLES, "question-answering"]),
    damaged(parquet_file(["a", "b"]))
    | st.lists(st.none() | st.text(max_size=5), max_size=5).map(parquet_file)
    | st.lists(st.none() | st.lists(st.integers(0, 9), max_size=2), max_size=5).map(parquet_file)
    | st.lists(st.none() | st.dates() | st.decimals(0, 9, places=2), max_size=1).map(parquet_file),
)
def test_parquet(task: str, content: bytes) -> None:
    keys = {"text": ["text", "text"]} if task in ("regression", "question-answering") else {}
    read(task, "a.parquet", content, **keys, **({"label": "text"} if task in TABLES else {}))


@fuzzed
@given(st.sampled_from([*TABLES, "question-answering"]), place(json_files(ROWS[:3])))
def test_a_list_of_objects(task: str, content: bytes | None) -> None:
    read(task, "a.json", content)


@fuzzed
@given(
    st.sampled_from(["fasttext", "trec"]),
    st.booleans(),
    damaged(b"__label__a __label__b one\n__label__a two\n\nDESC:manner why\nHUM:ind who\n")
    | st.lists(
        st.tuples(st.sampled_from(["__label__a", "__label__", "A:b", "A:", ":b", ""]), cells).map(" ".join),
        max_size=6,
    ).map(lambda lines: "\n".join(lines).encode("utf-8", "replace")),
)
def test_lines_with_labels(format: str, multi_label: bool, content: bytes) -> None:
    read("classification", "a.txt", content, format=format, multi_label=multi_label, label=None, text=None)


@fuzzed
@given(
    st.sampled_from(TABLES),
    st.sampled_from(["|", "\t", " ", "'", "\x0c", "é"]).flatmap(
        lambda each: st.tuples(st.just(each), tables(each))
    ),
    st.booleans(),
)
def test_other_separators(task: str, content: tuple[str, bytes], ignore_extra_fields: bool) -> None:
    separator, table = content
    read(task, "a.txt", table, format="csv", separator=separator, ignore_extra_fields=ignore_extra_fields)


@fuzzed
@given(st.text(max_size=60) | st.sampled_from(ODD_TEXT))
def test_lines_to_predict(text: str) -> None:
    read("classification", "a.txt", text.encode("utf-8", "replace"))
