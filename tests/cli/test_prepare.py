"""`bertcli prepare` through the real command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.small_runs import run_cli, small_config, write_config, write_corpus


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepare")
    corpus = write_corpus(folder / "corpus.txt")
    return write_config(folder / "config.yaml", small_config(corpus, folder / "run"))


def test_it_builds_a_store_and_says_what_is_in_it(config: Path):
    first = run_cli("prepare", config, "--json")
    assert first.returncode == 0, first.stderr
    assert "training a WordPiece vocabulary of 400 entries on all of the text" in first.stderr
    summary = json.loads(first.stdout)
    assert summary["documents"] + summary["heldout_documents"] == 40
    assert summary["vocab_size"] == 400
    assert summary["bytes"] > 4 * summary["words"]
    assert 1 < summary["tokens_per_word"] < 4
    assert 3 < summary["unigram_entropy"] < 6
    assert summary["unk_rate"] < 0.001
    assert Path(summary["store"], "manifest.json").is_file()

    run = config.parent / "with-store"  # as `prepare` leaves a run whose config names no store
    run.mkdir()
    (run / "store").symlink_to(summary["store"])
    for place in (run, summary["store"]):
        shown = run_cli("tokenizer", "encode", "--tokenizer", place, "river")
        assert shown.stdout.startswith("[CLS] "), shown.stderr

    one_path = f"corpus.files={config.parent / 'corpus.txt'}"  # means the same list of one
    table = run_cli("prepare", config, "--set", one_path)
    assert table.returncode == 0
    assert table.stderr == ""  # nothing is built again
    assert f"{summary['documents']} documents" in table.stdout
    assert f"{summary['tokens']:,} tokens" in table.stdout

    other = run_cli("prepare", config, "--set", "corpus.language=de")
    assert (other.returncode, other.stdout) == (2, "")
    assert "corpus.language: 'en' in the store, 'de' in the config" in other.stderr
    anew = run_cli("prepare", config, "--set", "corpus.language=de", "--overwrite")
    assert anew.returncode == 0


def test_a_missing_file_is_one_line_on_stderr(config: Path, tmp_path: Path):
    name = str(config.parent / "corpse.txt")
    result = run_cli("prepare", config, "--set", f"corpus.files=[{name}]", "--set", f"output_dir={tmp_path}",
                     "--set", "corpus.store=null")  # fmt: skip
    assert (result.returncode, result.stdout) == (2, "")
    near = config.parent / "corpus.txt"
    assert result.stderr == f"error: corpus.files: {name}: no such file or folder; did you mean {near}?\n"
