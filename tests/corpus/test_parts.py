"""A store built by several ranks is the one that a single process builds, byte for byte."""

from __future__ import annotations

import copy
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertcli.config.run import PretrainRecipe
from bertcli.corpus import begin
from bertcli.corpus.build import prepare_store
from bertcli.corpus.parts import share_out
from bertcli.corpus.token_store import OpenStore
from tests.decided import recipe
from tests.small_runs import small_config, write_corpus


class Threads:
    """A team of threads; each gets a copy of the first one's results, as processes do."""

    def __init__(self, size: int):
        self.size, self.barrier, self.results = size, threading.Barrier(size), dict[str, Any]()
        self.own = threading.local()

    def rank(self) -> int:
        return self.own.rank

    def num_ranks(self) -> int:
        return self.size

    def num_local_ranks(self) -> int:
        return self.size

    def on_first(self, work: Callable[[], Any]) -> Any:
        self.on_each(lambda: self.results.update(last=work()) if self.rank() == 0 else None)
        result = copy.deepcopy(self.results["last"])
        self.barrier.wait(60)
        return result

    def for_parts(self, number: int, work: Callable[[int], None]) -> None:
        self.on_each(lambda: work(self.rank()) if self.rank() < number else None)

    def on_each(self, work: Callable[[], Any]) -> Any:
        try:
            result = work()
        except BaseException:
            self.barrier.abort()
            raise
        self.barrier.wait(60)
        return result


def build(config: PretrainRecipe, size: int) -> list[OpenStore]:
    team = Threads(size)

    def run(rank: int) -> OpenStore:
        team.own.rank = rank
        return prepare_store(config, lambda line: None, processes=0, team=team)

    with ThreadPoolExecutor(size) as threads:
        return list(threads.map(run, range(size)))


def config_of(corpus: Path, folder: Path) -> PretrainRecipe:
    value = small_config(corpus, folder, corpus={"store": str(folder / "store")})
    return recipe(value)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number, documents in enumerate([4, 30, 1, 9, 2]):
        write_corpus(folder / f"{number}.txt", documents=documents, paragraphs=6)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("size", [2, 3, 8])
def test_any_number_of_ranks_builds_the_same_store(files: Path, tmp_path: Path, size: int) -> None:
    (alone,) = build(config_of(files, tmp_path / "alone"), 1)
    shared = build(config_of(files, tmp_path / "shared"), size)
    assert contents(shared[-1].folder) == contents(alone.folder)
    assert alone.train.num_documents > 20


def test_an_interrupted_build_goes_on_with_another_number_of_ranks(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_of(files, tmp_path / "shared")
    with monkeypatch.context() as patch:
        patch.setattr("bertcli.corpus.parts.join_parts", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            build(config, 3)
    parts = [path.name for path in (tmp_path / "shared" / "store.partial").glob("part-*")]
    assert sorted(parts) == ["part-0-of-3", "part-1-of-3", "part-2-of-3"]
    (alone,) = build(config_of(files, tmp_path / "alone"), 1)
    assert contents(build(config, 2)[0].folder) == contents(alone.folder)


def test_a_kill_while_parts_are_removed_loses_none_of_their_text(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, remove = config_of(files, tmp_path / "shared"), shutil.rmtree

    def killed(folder: Path) -> None:
        remove(folder / "train")
        raise ZeroDivisionError

    with monkeypatch.context() as patch:  # a part of another number of ranks, killed before its first save
        (tmp_path / "shared" / "store.partial" / "part-0-of-9").mkdir(parents=True)
        (tmp_path / "shared" / "store.partial" / begin.LOCK).touch()
        patch.setattr("bertcli.corpus.build.shutil.rmtree", killed)
        with pytest.raises(ZeroDivisionError):
            build(config, 3)
    (alone,) = build(config_of(files, tmp_path / "alone"), 1)
    assert contents(build(config, 3)[0].folder) == contents(alone.folder)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=30), st.integers(1, 12))
def test_the_files_are_shared_out_in_order(sizes: list[int], num_parts: int) -> None:
    parts = share_out(sizes, num_parts)
    assert [file for part in parts for file in part] == list(range(len(sizes)))
    assert len(parts) == num_parts
    largest = max(sum(sizes[file] for file in part) for part in parts)
    assert largest <= sum(sizes) / num_parts + 2 * max(sizes)
