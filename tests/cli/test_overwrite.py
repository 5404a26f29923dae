"""`--overwrite` removes nothing that the config reads, by whatever path the config names it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bertcli.folders.mark import Note, write_note
from bertcli.training.run_folder import Input, check_spared, removed_paths
from tests.finetunes import spam_config, spam_files
from tests.small_runs import small_config, write_config
from tests.snapshots import snapshot

SEED = "seed-3"
PLACES = ("model", "checkpoints/step-00000005/model", "checkpoints/best", f"{SEED}/model")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that looks finished, of several seeds, with a store; and what a config beside it needs."""
    spam_files(tmp_path)
    root = tmp_path / "run"
    for place in PLACES:
        shutil.copytree(tmp_path / "bert", root / place)
        shutil.copy(tmp_path / "train.tsv", root / place / "texts.tsv")
    for run in (root, root / SEED):
        shutil.copy(tmp_path / "train.tsv", run / "metrics.jsonl")
        (run / "config.yaml").write_text("seeds: [3]\n")
        write_note(run, Note("run", {"metrics.jsonl": [], "config.yaml": []}))
    shutil.copytree(tmp_path / "bert", root / "store/tokenizer")
    return tmp_path


def spelled(folder: Path, path: Path, spelling: str) -> str:
    if spelling == "dots":
        return f"{folder}/./dev.tsv/../{path.relative_to(folder)}".replace("dev.tsv", "bert")
    if spelling == "relative":
        return os.path.relpath(path)
    if spelling == "link":
        (folder / "a link").symlink_to(path)
        return str(folder / "a link")
    if spelling == "links to its files" and path.is_dir():  # as in the hub's cache
        (folder / "links").mkdir()
        for file in path.iterdir():
            (folder / "links" / file.name).symlink_to(file)
        return str(folder / "links")
    if spelling == "output is a link":
        root = folder / "run"
        top = root / path.relative_to(root).parts[0]
        elsewhere = folder / "disk"
        shutil.move(top, elsewhere)
        top.symlink_to(elsewhere)
        return str(elsewhere / path.relative_to(top))
    return str(path)


SPELLINGS = ("plain", "dots", "relative", "link", "links to its files", "output is a link")
FINETUNE = [
    *((key, place, "plain") for key in ("model", "distillation.teacher") for place in PLACES),
    *((key, "model", each) for key in ("model", "distillation.teacher") for each in SPELLINGS[1:]),
    *(("task.train", f"{place}/texts.tsv", "plain") for place in PLACES),
    *(("task.dev", "model/texts.tsv", each) for each in SPELLINGS[1:4]),
    ("task.train", "metrics.jsonl", "link"),
]


def refused(folder: Path, key: str, result: Callable[[], tuple[int, str, str]]) -> None:
    before = snapshot(folder)
    code, _, said = result()
    assert code == 2
    assert "--overwrite would delete" in said
    assert f"which is read because of {key}:" in said
    assert snapshot(folder) == before


@pytest.mark.parametrize(("key", "place", "spelling"), FINETUNE)
def test_finetune_spares_what_it_reads(
    folder: Path,
    key: str,
    place: str,
    spelling: str,
    run_bertcli: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    path = write_config(folder / "config.yaml", spam_config(folder))
    value = spelled(folder, folder / "run" / place, spelling)
    refused(folder, key, lambda: run_bertcli("finetune", path, "--set", f"{key}={value}", "--overwrite"))


PRETRAIN = [
    *(("model.init_from", place, "plain") for place in PLACES),
    *(("distillation.teacher", "model", each) for each in SPELLINGS[:3]),
    *(("tokenizer.path", f"{place}/vocab.txt", "plain") for place in PLACES[:2]),
    ("tokenizer.path", "model", "links to its files"),
    ("corpus.files", "model/texts.tsv", "plain"),
    ("corpus.files", f"{SEED}/metrics.jsonl", "link"),
    ("corpus.general", "checkpoints/best/texts.tsv", "dots"),
]


@pytest.mark.parametrize(("key", "place", "spelling"), PRETRAIN)
def test_pretrain_spares_what_it_reads(
    folder: Path,
    key: str,
    place: str,
    spelling: str,
    run_bertcli: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    config = small_config(folder / "train.tsv", folder / "run")
    del config["tokenizer"], config["model"], config["data"]
    if key == "corpus.general":
        config["model"] = {"init_from": str(folder / "bert")}
    path = write_config(folder / "config.yaml", config)
    value = spelled(folder, folder / "run" / place, spelling)
    refused(folder, key, lambda: run_bertcli("pretrain", path, "--set", f"{key}={value}", "--overwrite"))


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("tokenizer.path", "store/tokenizer"),
        ("tokenizer.path", "store/tokenizer/vocab.txt"),
        ("model.init_from", "store/tokenizer"),
        ("corpus.files", "store/tokenizer/vocab.txt"),
    ],
)
def test_prepare_spares_what_it_reads(
    folder: Path, key: str, place: str, run_bertcli: Callable[..., tuple[int, str, str]]
) -> None:
    config = small_config(folder / "train.tsv", folder / "run")
    config["corpus"]["store"] = None
    for section in ("tokenizer", "model", "data"):
        del config[section]
    path = write_config(folder / "config.yaml", config)
    value = folder / "run" / place
    refused(folder, key, lambda: run_bertcli("prepare", path, "--set", f"{key}={value}", "--overwrite"))


def test_what_stays_may_be_read(folder: Path) -> None:
    for name in ("train.tsv", "run/train.tsv", "run/store/tokenizer/vocab.txt", f"run/{SEED}/mine", "bert"):
        check_spared(removed_paths(folder / "run"), [Input("task.train", name, folder / name)], "")
