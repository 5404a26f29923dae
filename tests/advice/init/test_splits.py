"""Names tell which file is for training, which for evaluation, and which for later."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertcli.advice.init.files import find_files
from bertcli.advice.init.labeled import split_files, split_of
from bertcli.system.errors import UserError
from tests.advice.init.files import messages, write_csv


def write(folder: Path, *names: str) -> None:
    for name in names:
        write_csv(folder / name, [("label", "message"), *messages(12)], "\t")


def split(*names: Path) -> tuple[str, str | None, list[str]]:
    train, dev, test = split_files(find_files(list(map(str, names)), Path("/nowhere/c.yaml")).seen)
    return train.path.name, dev and Path(dev).name, [Path(name).name for name in test]


def test_the_files_beside_the_training_file_are_found(tmp_path: Path) -> None:
    write(tmp_path, "train.tsv", "dev.tsv", "test.tsv", "notes.tsv")
    assert split(tmp_path / "train.tsv") == ("train.tsv", "dev.tsv", ["test.tsv"])


def test_files_of_another_table_are_left_alone(tmp_path: Path) -> None:
    write(tmp_path, "spam.tsv", "spam-valid.tsv", "other-dev.tsv", "other-test.tsv")
    assert split(tmp_path / "spam.tsv") == ("spam.tsv", "spam-valid.tsv", [])


def test_a_folder_gives_all_of_its_splits(tmp_path: Path) -> None:
    write(tmp_path, "wnut17train.tsv", "emerging.dev.tsv", "emerging.test.tsv")
    assert split(tmp_path) == ("wnut17train.tsv", "emerging.dev.tsv", ["emerging.test.tsv"])


def test_a_lone_dev_file_is_trained_on(tmp_path: Path) -> None:
    write(tmp_path, "dev.tsv")
    assert split(tmp_path / "dev.tsv") == ("dev.tsv", None, [])


def test_bundled_files_keep_their_names() -> None:
    train, dev, test = split_files(find_files(["wnut17"], Path("/nowhere/c.yaml")).seen)
    assert (train.kind, dev, test) == ("conll", "wnut17-dev", ["wnut17-test"])


def test_several_training_files_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.tsv", "b.tsv")
    with pytest.raises(UserError, match=r"learns from one file, and these are 2: a.tsv, b.tsv"):
        split(tmp_path)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("train.csv", "train"),
        ("spam_training.csv", "train"),
        ("validation.jsonl.gz", "dev"),
        ("my-dev.tsv", "dev"),
        ("latest.csv", ""),
        ("evaluation-of-devices.csv", ""),
    ],
)
def test_parts_of_names(name: str, part: str) -> None:
    assert split_of(Path(name)) == part
