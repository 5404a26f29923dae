"""Names in a config -> files: every way to name them, their order, and what is said when there are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bertcli.corpus.files import list_files
from bertcli.folders.mark import Note, write_note
from bertcli.system.errors import UserError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.txt", "deep/er/c.txt", ".hidden.txt", ".git/d.txt"):
        path = tmp_path / "texts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("some text\n")
    return tmp_path / "texts"


def names(files: list) -> list[str]:
    return [file.path.name for file in files]


def test_a_folder_is_read_to_its_depths_sorted_without_hidden_files(folder: Path):
    assert names(list_files([str(folder)])) == ["a.txt", "b.txt", "c.txt"]


def test_a_glob_is_sorted_and_takes_folders(folder: Path):
    assert names(list_files([str(folder / "*.txt")])) == ["a.txt", "b.txt"]
    assert names(list_files([str(folder / "**" / "*.txt")])) == ["a.txt", "b.txt", "c.txt"]
    assert names(list_files([str(folder / "de*")])) == ["c.txt"]


def test_a_file_named_twice_is_read_once_in_the_order_given(folder: Path):
    assert names(list_files([str(folder / "b.txt"), str(folder)])) == ["b.txt", "a.txt", "c.txt"]


def test_only_a_file_named_itself_is_listed(folder: Path):
    assert [s.listed for s in list_files([str(folder / "b.txt"), str(folder)])] == [True, False, False]


def test_a_bundled_sample_has_a_name_that_does_not_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert [s.name for s in list_files(["classics"])] == ["sample:classics"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "classics").write_text("a file of that name wins\n")
    assert [s.name for s in list_files(["classics"])] == [str(tmp_path / "classics")]


@pytest.mark.parametrize("pattern", ["", "**", "**/*.txt", "d*/**/*.txt"])
def test_links_that_lead_back_up_are_followed_once(folder: Path, pattern: str):
    for name in ("one", "two"):
        (folder / "deep" / name).symlink_to(folder)
        (folder / name).symlink_to(".")
    (folder / "[x]").mkdir()
    (folder / "[x]" / "d.txt").write_text("some text\n")
    found = names(list_files([str(folder / pattern)]))
    assert sorted(found) == sorted(set(found))
    assert set(found) == {"a.txt", "b.txt", "c.txt", "d.txt"}


@pytest.mark.parametrize("pattern", ["texts", "texts/*", "texts/\udcff.txt"])
def test_a_path_that_is_not_utf_8_is_an_error_before_anything_is_read(folder: Path, pattern: str):
    (folder / "\udcff.txt").write_text("some text\n")
    with pytest.raises(UserError, match=r"texts/\\udcff.txt': this path is not UTF-8.*rename"):
        list_files([str(folder.parent / pattern)])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "texts/a.tx",
            r"texts/a.tx: no such file or folder in /.*, where bertcli was called; did.*texts/a.txt\?",
        ),
        ("clasics", r"clasics: no such file or folder in /.*; did you mean classics\?"),
        (
            "gone/zzz.txt",
            "zzz.txt: no such file or folder in /.*; there is no folder gone either; .*classics",
        ),
        ("texts/*.jsonl", "no file matches this pattern"),
        ("empty", "the folder holds no files"),
    ],
)
def test_a_name_for_nothing_is_an_error(
    folder: Path, name: str, message: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(folder.parent)
    (folder.parent / "empty").mkdir()
    with pytest.raises(UserError, match=message):
        list_files([name])
    assert list_files([name], missing_ok=True) == []


def test_what_bertcli_writes_in_a_corpus_folder_is_no_corpus(folder: Path):
    """Whatever it is called, and whether the run stands already or its folder is only named."""
    for note, place in ((Note("run"), "old"), (Note("store"), "deep/vectors")):
        (folder / place / "model").mkdir(parents=True)
        write_note(folder / place, note)
    for name in ("old/config.yaml", "old/model/vocab.txt", "deep/vectors/hashes.bin", "new/config.yaml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("written by bertcli\n")
    outputs = {(folder / "new").resolve()}
    texts = ["a.txt", "b.txt", "c.txt"]
    assert names(list_files([str(folder)], outputs)) == texts
    assert names(list_files([str(folder)], outputs, missing_ok=True)) == texts
    for pattern in ("**", "**/*.txt", "*"):
        assert names(list_files([str(folder / pattern)], outputs)) == texts
    with pytest.raises(UserError, match="no file matches"):
        list_files([str(folder / "*" / "*.yaml")], outputs)


def test_a_run_in_the_corpus_folder_itself_leaves_the_texts(folder: Path):
    """output_dir and corpus are one folder, or the corpus lies in output_dir."""
    write_note(folder, Note("run"))
    for name in ("config.yaml", "model/vocab.txt", "deep/config.yaml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("a: 1\n")
    outputs = {folder.resolve(), *((folder / name).resolve() for name in ("config.yaml", "model"))}
    for with_outputs in (outputs, set()):
        assert names(list_files([str(folder)], with_outputs)) == ["a.txt", "b.txt", "config.yaml", "c.txt"]
        assert names(list_files([str(folder / "deep")], with_outputs)) == ["config.yaml", "c.txt"]


def test_folders_a_thousand_deep(tmp_path: Path) -> None:
    folders = [str(tmp_path / "top") + "/d" * depth for depth in range(1001)]
    for folder in folders:
        os.mkdir(folder)
    with open(f"{folders[-1]}/a.txt", "w") as file:
        file.write("The cat sat.")
    try:
        found = list_files([folders[0]], [tmp_path / "run"])
        assert [file.path.name for file in found] == ["a.txt"]
    finally:
        os.remove(f"{folders[-1]}/a.txt")
        for folder in reversed(folders):  # pytest would remove them by recursion
            os.rmdir(folder)
