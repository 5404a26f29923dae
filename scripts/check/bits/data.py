"""Small labeled files of each task type, made from the samples that come with the package."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TASKS: dict[str, dict[str, Any]] = {
    "classification": {"text": "text", "label": "label", "suffix": "jsonl"},
    "regression": {"text": ["text", "other"], "label": "value", "suffix": "jsonl"},
    "token-classification": {"suffix": "conll"},
    "question-answering": {"suffix": "json"},
    "multiple-choice": {"text": "text", "choices": "choices", "label": "label", "suffix": "jsonl"},
}
"""Type -> the keys of its section `task`, and the suffix of its files."""


def write_data(samples: Path, folder: Path, train: int = 240, dev: int = 60) -> None:
    """Write TYPE-train.SUFFIX and TYPE-dev.SUFFIX, of so many rows, for each of `TASKS`.

    Args:
        samples: the folder `bertcli/samples` of a checkout.
    """
    folder.mkdir(parents=True, exist_ok=True)
    messages = [line.split("\t") for line in _lines(samples / "sms-spam" / "sms-spam.tsv.gz")[1:]]
    posts = re.split(r"\n\s*\n", "\n".join(_lines(samples / "wnut17" / "train.conll.gz")))
    story = [line for line in _lines(samples / "classics" / "classics.txt.gz") if len(line.split()) > 12]
    for side, numbers in (("train", range(train)), ("dev", range(train, train + dev))):
        rows = [_message_rows(messages, number) for number in numbers]
        for task in ("classification", "regression", "multiple-choice"):
            lines = (json.dumps(row[task], ensure_ascii=False) for row in rows)
            (folder / f"{task}-{side}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        tagged = "\n\n".join(posts[number] for number in numbers)
        (folder / f"token-classification-{side}.conll").write_text(tagged + "\n", encoding="utf-8")
        squad = {"version": "1.1", "data": [{"title": "story", "paragraphs": _paragraphs(story, numbers)}]}
        (folder / f"question-answering-{side}.json").write_text(json.dumps(squad), encoding="utf-8")


def _lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().split("\n")


def _message_rows(messages: list[list[str]], number: int) -> dict[str, dict[str, Any]]:
    """A row of each task that reads messages."""
    label, text = messages[number]
    other = messages[-number - 2][1]
    place = number % 2
    half = len(text) // 2
    return {
        "classification": {"text": text, "label": label},
        "regression": {"text": text, "other": other, "value": len(text) / (len(text) + len(other))},
        "multiple-choice": {
            "text": text[:half],
            "choices": [other, text[half:]] if place else [text[half:], other],
            "label": place,
        },
    }


def _paragraphs(story: list[str], numbers: Iterable[int]) -> list[dict[str, Any]]:
    """A question for each paragraph: which words follow its first three."""
    paragraphs = []
    for number in numbers:
        words = story[number].split()
        answer = " ".join(words[3:6])
        question = {
            "id": str(number),
            "question": f"What follows {' '.join(words[:3])}?",
            "answers": [{"text": answer, "answer_start": story[number].index(answer)}],
        }
        paragraphs.append({"context": story[number], "qas": [question]})
    return paragraphs
