"""Vocabulary and store: built of a small text, measured on samples of a large one."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bertcli.advice.init import amount as preparation
from bertcli.advice.init.amount import measure_amount, prepared
from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.files import corpus_files
from bertcli.samples import SAMPLES


def config_of(path: Path) -> PretrainConfig:
    value = {"output_dir": "runs/x", "corpus": {"files": [str(path)]}, "tokenizer": {"vocab_size": 400}}
    return check_config(PretrainConfig, value, "test")


def test_a_small_text_is_prepared_as_the_run_will(corpus: Path) -> None:
    config = config_of(corpus)
    files = corpus_files(config.corpus)
    with prepared(config, files, measure_amount(files, config.corpus)) as ready:
        assert ready.config.corpus.files == [str(corpus)]
        assert ready.tokens > 10 * ready.heldout_tokens / 2 > 0
        folder = Path(ready.config.output_dir).parent
        assert folder.is_dir()
    assert not folder.exists()


def test_the_time_of_a_large_text_follows_from_two_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
        text = file.read(1_000_000)
    path = tmp_path / "a.txt"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(preparation, "SAMPLES", (50_000, 150_000))
    config = config_of(path)
    files = corpus_files(config.corpus)
    amount = measure_amount(files, config.corpus)
    with prepared(config, files, amount) as ready:
        assert ready.config.corpus.files != [str(path)]
        assert ready.tokens == pytest.approx(amount.text_bytes / 2.5, rel=0.5)
        assert ready.seconds > 0


def test_text_of_which_nothing_can_be_held_out_is_prepared_without(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("The same two sentences. They are in each document.\n\n" * 60)
    config = config_of(path)
    files = corpus_files(config.corpus)
    with prepared(config, files, measure_amount(files, config.corpus)) as ready:
        assert ready.heldout_fraction == 0
