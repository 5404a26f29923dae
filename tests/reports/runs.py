"""Tiny runs of every kind, made by the program itself, and their reports as elements."""

from __future__ import annotations

import csv
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.reports.build import build_report, read_runs
from bertcli.reports.page import ReportOptions
from bertcli.training.pretraining import pretrain
from bertcli.training.train import finetune_parts
from tests.finetunes import checked, run, spam_config, spam_files, write_model
from tests.small_runs import small_config, write_corpus

ATTACK = "<img src=x onerror=alert(1)>"
ATTACKS = f"</script><script>alert(1)</script> {ATTACK} \"'\x1b[2J\u202e מלה"
VOID = {"meta", "img", "input", "br", "link"}


class Elements(HTMLParser):
    """Every start tag with its attributes, and all text of each section."""

    def __init__(self, document: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self.open: list[str] = []
        self._section = ""
        self.feed(document)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID and not (self.open and "svg" in self.open and tag in ("path", "circle")):
            self.open.append(tag)
        if tag == "section":
            self._section = str(dict(attrs)["id"])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID or tag in ("path", "circle"):
            return
        assert self.open.pop() == tag
        if tag == "section":
            self._section = ""

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.texts[self._section] = f"{self.texts.get(self._section, '')} {data}"

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def head(self) -> str:
        """The text before the first section, on one line."""
        return " ".join(self.texts[""].split())

    def text(self, section: str) -> str:
        """The text of a section, on one line."""
        return " ".join(self.texts[section].split())


def report(*roots: Path, **options: Any) -> Elements:
    """The report of some runs, of which nothing is written."""
    document = build_report(read_runs(roots), ReportOptions(**options))
    elements = Elements(document)
    check_harmless(document, elements)
    return elements


def check_harmless(document: str, elements: Elements) -> None:
    """What is true of every report."""
    assert len(document.encode()) < 1_000_000
    assert not elements.named("script")
    assert not elements.named("img")
    assert not elements.named("link")
    for _, attributes in elements.tags:
        assert not any(name.startswith("on") or name in ("href", "src", "style") for name in attributes)
    for tag, attributes in elements.tags:
        if "table-box" in (attributes.get("class") or ""):
            assert attributes["tabindex"] == "0"
        assert "aria-label" not in attributes or tag not in ("span", "div", "p") or "role" in attributes
    ids = [attributes["id"] for _, attributes in elements.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for svg in elements.named("svg"):
        named = svg.get("aria-hidden") == "true" or (svg["role"] == "img" and svg["aria-labelledby"])
        assert named
    for control in "\x1b\u202e":
        assert control not in document


def pretraining(folder: Path, **sections: Any) -> Path:
    """A run of 12 steps; returns its folder."""
    config = small_config(write_corpus(folder / "corpus.txt"), folder / "run", **sections)
    pretrain(check_config(PretrainConfig, config, "test"), resume=False, overwrite=False)
    return folder / "run"


def spam(folder: Path, **sections: Any) -> Path:
    """A run that tells spam from ham."""
    config = spam_config(spam_files(folder), **{"training": {"epochs": 1}, **sections})
    if checked(config).parts:
        finetune_parts(checked(config), resume=False, overwrite=False)
    else:
        run(config)
    return folder / "run"


def labeled(folder: Path, task: dict[str, Any], name: str, text: str) -> Path:
    """A run on one file, which is train and dev at once."""
    folder.mkdir(parents=True, exist_ok=True)
    write_model(folder / "bert")
    (folder / name).write_text(text, encoding="utf-8", newline="")
    config = spam_config(folder, training={"epochs": 1})
    file = str(folder / name)
    config["task"] = {"train": file, "dev": file, "max_length": 32, **task}
    run(config)
    return folder / "run"


def table(rows: list[list[Any]]) -> str:
    """CSV of rows, the header first."""

    class Lines(list[str]):
        write = list.append

    lines = Lines()
    csv.writer(lines).writerows(rows)
    return "".join(lines)


def questions(context: str, answers: list[tuple[str, str]]) -> str:
    """SQuAD's JSON of questions about one context; an empty answer: there is none."""
    asked = [
        {
            "id": str(number),
            "question": question,
            "answers": [{"text": answer, "answer_start": context.index(answer)}] if answer else [],
        }
        for number, (question, answer) in enumerate(answers)
    ]
    return json.dumps({"version": "2.0", "data": [{"paragraphs": [{"context": context, "qas": asked}]}]})
