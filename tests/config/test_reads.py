"""Every key of a config is read by the code that runs: found by running it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import pytest
import torch
from pydantic import model_validator

from bertcli.config.finetune import FinetuneConfig
from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig, TrainingConfig
from bertcli.config.section import Section
from bertcli.corpus.clean.run import clean_corpus
from bertcli.corpus.documents import read_paragraphs
from bertcli.corpus.engines import Placing
from bertcli.reports.build import write_report_if_asked
from bertcli.tasks.data import LabeledData, load_labeled_data
from bertcli.tasks.supervised import LabeledBatch
from bertcli.tokenizer.tokenizer import Tokenizer
from bertcli.training.pretraining import pretrain
from tests.config.reads import Key, all_keys, recorded_reads
from tests.finetunes import checked, run, spam_config, spam_files
from tests.small_runs import small_config, write_corpus
from tests.tasks.reading import write, write_jsonl

CHOICES = {"type": "multiple-choice", "text": "q", "choices": ["a", "b"], "label": "right"}
QUESTION = {"id": "1", "question": "Where?", "answers": [{"text": "mat", "answer_start": 21}]}
PARAGRAPH = {"context": "The cat slept on the mat.", "qas": [QUESTION]}
QUESTIONS = json.dumps({"version": "1.1", "data": [{"title": "cat", "paragraphs": [PARAGRAPH]}]})


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> set[Key]:
    """What runs of a few steps read, and the data of tasks that have keys of their own."""
    folder = tmp_path_factory.mktemp("reads")
    with recorded_reads() as reads:
        run_pretraining(folder)
        split = {"dev": None, "dev_fraction": 0.2}
        config = spam_config(spam_files(folder), training={"epochs": 0.2}, task=split)
        run(config)
        config["distillation"] = {"teacher": str(folder / "run")}
        run(config | {"output_dir": str(folder / "student")})
        load_task(folder, CHOICES, "choices.csv", "q,a,b,right\nOne or two?,one,two,0\nNo?,no,yes,0\n")
        data = load_task(folder, {"type": "question-answering"}, "questions.json", QUESTIONS)
        item, example = data.train.items[0], data.train.examples[0]
        data.task.predict(example, [item], [torch.zeros(item.length, 2)])
        plain = {"type": "token-classification", "label": "tags", "tag_scheme": "plain"}
        load_task(folder, plain, "tags.csv", "text,tags\nit runs,PRON VERB\n")
        spans = {"type": "token-classification", "format": "spans"}
        row = {"text": "it runs", "label": [[0, 2, "x"], [0, 7, "y"], [3, 5, "x"]]}
        fitting = {"span_ends": "widen", "overlaps": "longest"}
        load_task(folder, spans | fitting, "spans.jsonl", json.dumps(row))
        several = {"type": "classification", "text": "q", "label": "l", "multi_label": True}
        load_task(folder, several, "several.csv", "q,l\none,a|b\ntwo,c\n")
        share = {"type": "regression", "text": "q", "label": "n", "sigmoid": True}
        load_task(folder, share, "shares.csv", "q,n\none,0.5\ntwo,1\n")
        pairs = {"type": "sentence-embedding", "text": ["a", "b"]}
        data = load_task(folder, pairs, "pairs.csv", "a,b\none cat,a cat\ntwo,both\n")
        data.task.term(torch.randn(4, 8), LabeledBatch(tuple(data.train.items), pad_id=0))
    return reads | {("TaskConfig", key) for section, key in reads if section == "TaskSettings"}


def run_pretraining(folder: Path) -> None:
    """Of replaced words, on JSON lines; of plain text, which has other keys, a document is read."""
    text = write_corpus(folder / "corpus.txt")
    sections = {"evaluation": {"every_steps": 2}, "checkpoint": {"every_steps": 2}, "training": {"steps": 2}}
    config = small_config(text, folder / "pretrained", **sections)
    assert next(iter(read_paragraphs(text, check_config(PretrainConfig, config, "test").corpus)))
    rows = ({"text": document} for document in text.read_text(encoding="utf-8").split("\n\n"))
    config["model"]["family"], config["data"]["objective"] = "electra", "rtd"
    config["corpus"] |= {"files": [str(write_jsonl(folder / "corpus.jsonl", *rows))], "format": "jsonl"}
    replaced = check_config(PretrainConfig, config, "test")
    pretrain(replaced, resume=False, overwrite=False)
    write_report_if_asked(replaced)
    config |= {"output_dir": str(folder / "distilled"), "tokenizer": {}}
    config["model"]["family"], config["data"]["objective"] = "distilbert", "mlm"
    config["corpus"] = {
        "sources": [
            {"files": str(text), "weight": 2.0, "name": "plain"},
            {"files": config["corpus"]["files"], "weight": 1.0, "format": "jsonl"},
        ],
        "heldout_fraction": 0.2,
        "store": str(folder / "other-store"),
    }
    clean_corpus(
        check_config(PretrainConfig, config, "test"),
        folder / "cleaned",
        Placing(1, 1),
        dry_run=True,
        page=lambda account: "",
        report=lambda line: None,
    )
    teacher = folder / "pretrained" / "model" / "generator"
    config["distillation"] = {"teacher": str(teacher), "weights": [5.0, 2.0, 0.0]}
    pretrain(check_config(PretrainConfig, config, "test"), resume=False, overwrite=False)


def load_task(folder: Path, task: dict[str, Any], name: str, text: str) -> LabeledData:
    """Read a labeled file of this text, as that task; the vocabulary is that of `spam_files`."""
    config = spam_config(folder)
    config["task"] = {**task, "train": str(write(folder / name, text)), "max_length": 32, "doc_stride": 8}
    return load_labeled_data(checked(config), Tokenizer.load(folder / "bert"), lambda line: None)


def unread(root: type[Section], read: set[Key]) -> set[Key]:
    return all_keys(root) - read


@pytest.mark.parametrize("root", [PretrainConfig, FinetuneConfig])
def test_each_key_is_read(root: type[Section], read: set[Key]) -> None:
    assert unread(root, read) == set()


def test_a_key_that_nobody_reads_is_found(read: set[Key]) -> None:
    planted = type(
        "TrainingConfig", (TrainingConfig,), {"__annotations__": {"momentum": float}, "momentum": 0.9}
    )
    root = type("PretrainConfig", (PretrainConfig,), {"__annotations__": {"training": planted}})
    assert unread(root, read) == {("TrainingConfig", "momentum")}


def test_checks_and_copies_are_no_reads() -> None:
    names = ["momentum"]
    with recorded_reads() as reads:
        section = small_section()
        copied = {name: getattr(section, name) for name in names}
        assert reads == set()
        assert section.momentum == copied["momentum"]
    assert reads == {("Small", "momentum")}
    with recorded_reads() as later:
        pass
    assert section.momentum
    assert later == set()


def small_section() -> Any:
    class Small(Section):
        momentum: float = 0.9

        @model_validator(mode="after")
        def _check(self) -> Self:
            assert self.momentum
            return self

    return Small()
