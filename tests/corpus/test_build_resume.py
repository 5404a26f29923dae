"""A build that is killed, again and again, ends as the same store as one that nothing disturbed."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bertcli.config.run import PretrainRecipe, with_values
from bertcli.corpus import build, chunks
from bertcli.corpus.build import prepare_store
from bertcli.corpus.writer import StoreWriter
from bertcli.samples import SAMPLES
from tests.decided import recipe

# Slow enough to be killed at many a moment: a little text a chunk, and a rest after each.
SLOW_BUILD = """
import sys, time
from bertcli.config.load import load_config
from bertcli.config.run import PretrainRecipe, with_values
from bertcli.corpus import build, chunks, writer
from bertcli.corpus.build import prepare_store
from bertcli.corpus.writer import StoreWriter
from pathlib import Path
chunks.CHUNK_CHARACTERS, writer.SPOOL_BYTES = 1500, 1000
add = StoreWriter.add
def add_and_rest(*arguments):
    add(*arguments)
    time.sleep(0.01)
StoreWriter.add = add_and_rest
config = load_config(PretrainRecipe, Path(sys.argv[1]))
build.JOURNAL_SECONDS = 0
prepare_store(config, print, processes=int(sys.argv[2]))
"""


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
        chapters = [chapter[:6000].rpartition("\n")[0] for chapter in file.read().split("\n\n")[::8]]
    (tmp_path / "corpus").mkdir()
    for number in range(3):
        data = "\n\n".join(chapters[number::3]).encode()
        (tmp_path / "corpus" / f"{number}.txt.gz").write_bytes(gzip.compress(data, mtime=0))
    path = tmp_path / "config.yaml"
    path.write_text(config(tmp_path, "run").model_dump_json())
    return path


def config(folder: Path, output_dir: str) -> PretrainRecipe:
    return recipe(
        {
            "output_dir": str(folder / output_dir),
            "corpus": {"files": [str(folder / "corpus")], "heldout_fraction": 0.2},
            "tokenizer": {"vocab_size": 600},
        }
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def start(config_file: Path, processes: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SLOW_BUILD, str(config_file), str(processes)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def kill_when(started: subprocess.Popen[str], ready: Callable[[], bool]) -> list[int]:
    """Kill the build once it is ready. Return its child processes at that time, where /proc lists them."""
    deadline, listed = time.monotonic() + 60, Path(f"/proc/{started.pid}/task/{started.pid}/children")
    while not ready():
        assert started.poll() is None, "the build ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.002)
    children = list(map(int, listed.read_text().split())) if listed.exists() else []
    started.kill()
    started.communicate()
    return children


def stored_documents(partial: Path) -> int:
    journal = partial / "building.json"
    if not journal.exists():
        return -1
    sides = json.loads(journal.read_text())["progress"]["sources"][0]["sides"]
    return sum(side["documents"] for side in sides.values())


# While the vocabulary is trained (0), then after so many documents.
@pytest.mark.parametrize(("processes", "moments"), [(0, (0, 2, 11)), (2, (3, 15))])
def test_a_killed_build_ends_with_its_processes_and_goes_on_to_the_same_bytes(
    config_file: Path, processes: int, moments: tuple[int, ...]
):
    folder = config_file.parent
    partial, store = folder / "run" / "store.partial", folder / "run" / "store"
    for moment in moments:
        started = start(config_file, processes)
        children = kill_when(started, lambda moment=moment: stored_documents(partial) >= moment)
        assert len(children) >= processes or not Path("/proc").exists()
        deadline = time.monotonic() + 30
        while any(map(alive, children)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert not store.exists()
    last = start(config_file, processes)
    output, _ = last.communicate(timeout=60)
    assert last.returncode == 0
    assert f"resuming the interrupted build in {partial}" in output
    undisturbed = prepare_store(config(folder, "other"), lambda line: None, processes=0)
    assert contents(store) == contents(undisturbed.folder)


def test_a_build_of_other_options_starts_anew(config_file: Path, monkeypatch: pytest.MonkeyPatch):
    folder, add = config_file.parent, StoreWriter.add

    def add_five_documents(*arguments: Any) -> None:
        if stored_documents(folder / "run" / "store.partial") >= 5:
            raise KeyboardInterrupt
        add(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(StoreWriter, "add", add_five_documents)
        patch.setattr(chunks, "CHUNK_CHARACTERS", 1500)
        patch.setattr(build, "JOURNAL_SECONDS", 0)
        with pytest.raises(KeyboardInterrupt):
            prepare_store(config(folder, "run"), lambda line: None, processes=0)
    lines: list[str] = []
    other = with_values(config(folder, "run"), {"tokenizer": {"vocab_size": 500}})
    store = prepare_store(other, lines.append, processes=0)
    assert store.tokenizer.vocab_size == 500
    assert not any("resuming" in line for line in lines)


def alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
