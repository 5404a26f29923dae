"""The sample that a vocabulary is trained on: all of a small corpus, an even part of a large one."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bertcli.config.corpus import CorpusConfig
from bertcli.corpus import sample
from bertcli.corpus.files import corpus_files
from bertcli.corpus.sample import sample_paragraphs, sample_share


@pytest.fixture
def corpus(tmp_path: Path) -> CorpusConfig:
    (tmp_path / "a.txt").write_text("".join(f"paragraph number {i}\n" for i in range(4000)))
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"\n\nlast\n"))
    return CorpusConfig(files=[str(tmp_path)])


def test_a_small_corpus_is_taken_whole(corpus: CorpusConfig):
    files = corpus_files(corpus)
    assert sample_share(files) == 1.0
    assert len(list(sample_paragraphs(files, corpus, [1.0]))) == 4001


def test_a_large_one_gives_an_even_part_the_same_each_time(corpus: CorpusConfig):
    files = corpus_files(corpus)
    share = sample_share(files, 20_000)
    assert share == pytest.approx(20_000 / 86_000, rel=0.1)
    taken = list(sample_paragraphs(files, corpus, [share]))
    assert taken == list(sample_paragraphs(files, corpus, [share]))
    assert sum(map(len, taken)) == pytest.approx(20_000, rel=0.1)
    numbers = [int(paragraph.split()[-1]) for paragraph in taken if paragraph != "last"]
    assert sum(number < 2000 for number in numbers) == pytest.approx(len(numbers) / 2, rel=0.1)


def test_a_sample_never_grows_past_twice_its_size(corpus: CorpusConfig, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sample, "SAMPLE_BYTES", 5_000)
    taken = list(sample_paragraphs(corpus_files(corpus), corpus, [1.0]))
    assert 9_900 < sum(map(len, taken)) <= 10_000
