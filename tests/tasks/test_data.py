"""Files of a config -> examples to learn from and to be judged by; and whether a resume finds them again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bertcli.system.errors import UserError
from bertcli.tasks.data import LabeledData, load_labeled_data
from tests.finetunes import LETTERS, checked, spam_config, write_spam_split
from tests.wordpieces import wordpiece

LABELS = ("ham", "spam")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_spam_split(tmp_path)


def load(folder: Path, **sections: Any) -> tuple[LabeledData, list[str]]:
    lines: list[str] = []
    tokenizer = wordpiece(LETTERS)
    return load_labeled_data(checked(spam_config(folder, **sections)), tokenizer, lines.append), lines


def texts(data: LabeledData) -> tuple[list[str], list[str]]:
    assert data.dev is not None
    return [e.texts[0] for e in data.train.examples], [e.texts[0] for e in data.dev.examples]


def test_every_example_is_encoded(files: Path) -> None:
    data, lines = load(files)
    assert data.task.labels == LABELS
    assert data.dev is not None
    for split, rows in ((data.train, 60), (data.dev, 20)):
        assert [item.example for item in split.items] == list(range(rows)) == list(range(len(split.examples)))
    first = data.dev.first(3)
    assert first.examples == data.dev.examples[:3]
    assert first.items == data.dev.items[:3]
    assert data.dev.first(None) is data.dev
    assert lines[0].startswith("train: 60 rows; ham ")
    assert lines[1].startswith("dev: 20 rows; ham ")


def test_the_lengths_reported_are_those_before_the_cut(files: Path) -> None:
    whole, cut = load(files, task={"max_length": 512})[1], load(files)[1]
    assert whole[2] in cut[2]  # the same figures, and how much was cut besides
    assert "are cut at 32 (task.max_length)" in cut[2]


def test_the_dev_data_are_split_off_by_seed_whatever_the_seeds_of_the_runs(files: Path) -> None:
    task = {"dev": None, "dev_fraction": 0.2}
    train, dev = texts(load(files, task=task)[0])
    assert len(dev) == 12
    assert sorted(train + dev) == sorted(
        line.split("\t")[1] for line in (files / "train.tsv").read_text().splitlines()[1:]
    )
    assert texts(load(files, task=task, seeds=[1, 2])[0]) == (train, dev)
    assert texts(load(files, task=task, seed=8)[0]) != (train, dev)


def test_a_fold_is_what_the_others_learn_from(files: Path) -> None:
    task = {"dev": None}
    data = load(files, task=task, folds=3)[0]
    whole = [example.texts[0] for example in data.train.examples]
    assert data.dev is None
    folds = [texts(load(files, task=task, folds=3, fold=fold)[0]) for fold in (1, 2, 3)]
    assert sorted(text for _, dev in folds for text in dev) == sorted(whole)
    for train, dev in folds:
        assert sorted(train + dev) == sorted(whole)
    data = load(files, task=task, folds=3, fold=2)[0]
    assert data.dev is not None
    assert [whole[place] for place in data.dev.places] == folds[1][1]


def test_a_label_of_another_fold_alone_has_an_output_and_no_weight(files: Path, tmp_path: Path) -> None:
    table = "".join(f"{'once' if i == 7 else 'ham' if i % 2 else 'spam'}\tmessage {i}\n" for i in range(12))
    (tmp_path / "train.tsv").write_text(f"label\tmessage\n{table}", encoding="utf-8")
    task = {"dev": None, "train": str(tmp_path / "train.tsv"), "class_weights": "balanced"}
    for fold in (1, 2, 3):
        data = load(files, task=task, folds=3, fold=fold)[0]
        assert data.task.labels == ("ham", "once", "spam")


def test_class_weights(files: Path) -> None:
    rows = load(files)[0].train.examples
    ham = sum(example.label == "ham" for example in rows)
    for given, weights in (
        ("balanced", {"ham": 60 / (2 * ham), "spam": 60 / (2 * (60 - ham))}),
        ({"ham": 1, "spam": 3}, {"ham": 1.0, "spam": 3.0}),
    ):
        task: Any = load(files, task={"class_weights": given})[0].task
        assert dict(zip(LABELS, task._weights_C.tolist(), strict=True)) == pytest.approx(weights)
    with pytest.raises(UserError, match="for each label, missing: spam; no such label: eggs"):
        load(files, task={"class_weights": {"ham": 1, "eggs": 2}})


def test_labels_to_be_judged_by_must_have_been_learned(files: Path) -> None:
    with open(files / "dev.tsv", "a") as file:
        file.write("eggs\twith everything\n")
    with pytest.raises(UserError, match=r"(?s)do not occur in the training file \(ham, spam\).*'eggs'"):
        load(files)
