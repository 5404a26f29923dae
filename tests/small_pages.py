"""Where a reader of the documentation works: files as the pages name them, and runs of a second.

The commands and configs are those of the pages. The numbers in the configs are smaller, the bundled samples
are shorter, and the speed of the machine is given, not measured.
"""

from __future__ import annotations

import copy
import csv
import gzip
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import bertcli
from bertcli.advice.init import finetuning as fit_finetuning
from bertcli.advice.init import fit_pretraining
from bertcli.config.finetune import FinetuneConfig
from bertcli.config.schema import PretrainConfig
from bertcli.config.section import Section
from bertcli.samples import LABELED, SAMPLES
from tests.advice.init.files import speed
from tests.small_runs import write_corpus

_LOOP = {"training.device": "cpu", "training.precision": "fp32", "training.batch_size": 8}
_MOST: dict[type[Section], dict[str, Any]] = {
    PretrainConfig: _LOOP
    | {
        "training.steps": 8,
        "data.max_length": 32,
        "evaluation.every_steps": 4,
        "evaluation.batches": 1,
        "checkpoint.every_steps": 4,
    },
    FinetuneConfig: _LOOP | {"training.epochs": 1, "task.max_length": 32},
}
_NEW_MODEL = {
    "tokenizer.vocab_size": 400,
    "model.layers": 2,
    "model.hidden": 32,
    "model.heads": 2,
    "model.feed_forward": 64,
    "model.max_positions": 64,
}
"""The largest numbers, for any run and for one that makes a model of its own; words stand as they are."""

_JAPANESE = (
    *("設定ファイルが見つかりません。", "猫は庭で眠っています。", "雨が降ったので、家で本を読みました。"),
    *("新しいファイルを開いてください。", "その本は机の上にあります。", "朝早く、町の市場へ行きました。"),
    *(
        "庭の木に鳥が来ました。",
        "設定を変えてから、もう一度始めてください。",
        "夜になると、町は静かになります。",
    ),
)


def enter(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Be the reader in this empty folder, until the patch is undone."""
    _write_files(folder)
    samples = folder / ".samples"
    samples.mkdir()
    patch.setitem(SAMPLES, "classics", write_corpus(samples / "classics.txt", documents=80, paragraphs=6))
    for name, lines in {"sms-spam": 200, "wnut17": 400, "wnut17-dev": 200}.items():
        patch.setitem(LABELED, name, _first_lines(LABELED[name], samples, lines))
    for schema in _MOST:
        patch.setattr(schema, "model_validate", _validate_small(schema))
    for module in (fit_pretraining, fit_finetuning):
        patch.setattr(module, "probe", lambda plan, seconds: speed(0.001, 1000))
    patch.setattr(fit_pretraining, "matmul_rate", lambda *given, **named: 1e11)
    patch.setattr(fit_finetuning, "start_seconds", lambda module: 1.0)
    patch.chdir(folder)


def write_runs(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """`runs/quickstart` and `runs/spam`, as the commands of the first page make them."""
    enter(folder, patch)
    bertcli.pretrain("quickstart")
    bertcli.finetune("spam")


def copy_runs(names: Iterable[str], source: Path, folder: Path) -> None:
    """What a page begins with, from the folder of `write_runs`."""
    for name in names:
        shutil.copytree(source / name, folder / name)


def _write_files(folder: Path) -> None:
    """A folder of texts, and tables of messages and of passages."""
    chapters = (
        write_corpus(folder / "corpus.txt", documents=120, paragraphs=4)
        .read_text(encoding="utf-8")
        .split("\n\n")
    )
    (folder / "texts").mkdir()
    for number, chapter in enumerate(chapters):
        (folder / "texts" / f"{number:03}.txt").write_text(chapter, encoding="utf-8")
    stories = ("".join(_JAPANESE[(start + each) % 9] for each in (0, 2, 3, 7)) for start in range(36))
    (folder / "japanese.txt").write_text("\n\n".join(stories), encoding="utf-8")
    with gzip.open(LABELED["sms-spam"], "rt", encoding="utf-8") as file:
        header, *rows = (line.rstrip("\n").split("\t", 1) for line in file)
    _write_table(folder / "messages.csv", [header, *rows[:120]])
    _write_table(folder / "test.csv", [header, *rows[120:160]])
    _write_table(folder / "new.csv", ([message] for _, message in [header, *rows[160:170]]))
    passages = [["question", "passage", "relevant"]]
    for number in range(90):
        question, right = number // 3, number % 3 == 0
        passages.append(
            [f"who sat in house {question}", f"house {question if right else number}", f"{right:d}"]
        )
    _write_table(folder / "passages.csv", passages)
    _write_table(folder / "found.csv", [row[:2] for row in passages[:10]])


def _validate_small(schema: type[Section]) -> Any:
    validate = schema.model_validate

    def validate_small(value: Any) -> Section:
        return validate(_smaller(value, _MOST[schema]))

    return validate_small


def _smaller(value: dict[str, Any], most: dict[str, Any]) -> dict[str, Any]:
    value = copy.deepcopy(value)
    has_own_sizes = "corpus" in value and "distillation" not in value
    if has_own_sizes and not (value.get("model") or {}).get("init_from"):
        most = most | _NEW_MODEL
    for dotted, largest in most.items():
        name, key = dotted.split(".")
        section = value.setdefault(name, {})
        if isinstance(section, dict):
            given = section.get(key)
            section[key] = min(given, largest) if isinstance(given, int | float) else largest
    if value.get("folds"):
        value["folds"] = 2
    return value


def _first_lines(path: Path, folder: Path, number: int) -> Path:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = [line for line, _ in zip(file, range(number), strict=False)]
    short = folder / path.name.removesuffix(".gz")
    short.write_text("".join(lines).rstrip("\n") + "\n\n", encoding="utf-8")
    return short


def _write_table(path: Path, rows: Iterable[list[str]]) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
