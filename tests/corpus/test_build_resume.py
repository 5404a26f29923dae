"""A build that is killed, again and again, ends as the same store as one that nothing disturbed."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bertcli.config.run import PretrainRecipe, with_values
from bertcli.corpus.build import prepare_store
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


def kill_when(build: subprocess.Popen[str], ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not ready():
        assert build.poll() is None, "the build ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.002)
    build.kill()
    build.communicate()


def stored_documents(partial: Path) -> int:
    journal = partial / "building.json"
    if not journal.exists():
        return -1
    sides = json.loads(journal.read_text())["progress"]["sides"]
    return sum(side["documents"] for side in sides.values())


# While the vocabulary is trained (0), then after so many documents.
@pytest.mark.parametrize(("processes", "moments"), [(0, (0, 2, 11, 19)), (2, (3, 15))])
def test_a_killed_build_goes_on_to_the_same_bytes(
    config_file: Path, processes: int, moments: tuple[int, ...]
):
    folder = config_file.parent
    partial, store = folder / "run" / "store.partial", folder / "run" / "store"
    for moment in moments:
        build = start(config_file, processes)
        kill_when(build, lambda moment=moment: stored_documents(partial) >= moment)
        assert not store.exists()
    last = start(config_file, processes)
    output, _ = last.communicate(timeout=60)
    assert last.returncode == 0
    assert f"resuming the interrupted build in {partial}" in output
    undisturbed = prepare_store(config(folder, "other"), lambda line: None, processes=0)
    assert contents(store) == contents(undisturbed.folder)


def test_a_build_of_other_options_starts_anew(config_file: Path):
    folder = config_file.parent
    build = start(config_file, 0)
    kill_when(build, lambda: stored_documents(folder / "run" / "store.partial") >= 5)
    lines: list[str] = []
    other = with_values(config(folder, "run"), {"tokenizer": {"vocab_size": 500}})
    store = prepare_store(other, lines.append)
    assert store.tokenizer.vocab_size == 500
    assert not any("going on" in line for line in lines)


def test_the_processes_of_a_killed_build_end_with_it(config_file: Path):
    build = start(config_file, 2)
    children: list[int] = []

    def working() -> bool:
        listed = Path(f"/proc/{build.pid}/task/{build.pid}/children")
        if not listed.exists():
            pytest.skip("needs /proc")
        children[:] = map(int, listed.read_text().split())
        return stored_documents(config_file.parent / "run" / "store.partial") >= 2

    kill_when(build, working)
    assert len(children) >= 2
    deadline = time.monotonic() + 30
    while any(alive(pid) for pid in children):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
