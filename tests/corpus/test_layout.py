"""How the lines of a corpus are laid out: what is hard-wrapped is found, what is not is left alone."""

from __future__ import annotations

import gzip
import json
import textwrap
from pathlib import Path

import pytest

import bertcli
from bertcli.advice.check.pretraining import check_pretraining
from bertcli.config.corpus import CorpusConfig
from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.build import prepare_store
from bertcli.corpus.documents import split_sentences
from bertcli.corpus.files import corpus_files
from bertcli.corpus.sample import layout_advice
from bertcli.samples import SAMPLES
from bertcli.training.recipe import decide_recipe

SONNET = """Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date;
Sometime too hot the eye of heaven shines,
And often is his gold complexion dimm'd;

"""


SENTENCES = {
    "zh": "他说这是一个很长的句子，我们在花园里散步。",
    "th": "ภาษาไทยนี้ไม่มีที่สิ้นสุด",
    "hi": "हम बगीचे में घूमने गए। ",
}


@pytest.fixture(scope="module")
def paragraphs() -> list[str]:
    with gzip.open(SAMPLES["classics"], "rt", encoding="utf-8") as file:
        return [line for line in file.read(300_000).split("\n") if line]


def advice(*files: Path, **options) -> list[str]:
    corpus = CorpusConfig(files=[str(file) for file in files], **options)
    return [f"{each.problem}; {each.mend}" for each in layout_advice(corpus_files(corpus), corpus)]


def books(folder: Path, paragraphs: list[str], width: int | None, between: str) -> list[Path]:
    """Two files of such paragraphs."""
    files = [folder / "one.txt", folder / "two.txt"]
    for file, part in zip(files, (paragraphs[::2], paragraphs[1::2]), strict=True):
        laid_out = ["\n".join(textwrap.wrap(each, width)) if width else each for each in part]
        file.write_text(between.join(laid_out) + "\n")
    return files


@pytest.mark.parametrize("width", [50, 72, 100])
@pytest.mark.parametrize("between", ["\n\n", "\n"])
def test_hard_wrapped_text_is_found(tmp_path: Path, paragraphs: list[str], width: int, between: str) -> None:
    files = books(tmp_path, paragraphs, width, between)
    (found,) = advice(*files)
    assert f"hard-wrapped at about {width} characters in 2 of 2 files" in found
    assert "set corpus.join_lines: true and corpus.document: file" in found
    assert "document" not in advice(*files, document="file")[0]
    assert "corpus.format: text and corpus.join_lines: true" in advice(*files, format="sentences")[0]
    assert advice(*files, document="file", join_lines=True) == []


def test_scripts_without_blanks_or_capitals_are_judged_too(tmp_path: Path) -> None:
    for name, sentence in SENTENCES.items():
        file = tmp_path / name
        file.write_text("\n\n".join("\n".join(textwrap.wrap(sentence * 20, 41)) for _ in range(10)))
        assert "hard-wrapped" in advice(file)[0]
        file.write_text("\n".join(sentence * (1 + number % 3) for number in range(100)))
        assert advice(file) == []


def test_a_book_a_file_is_found(tmp_path: Path, paragraphs: list[str]) -> None:
    files = books(tmp_path, paragraphs, None, "\n\n")
    assert advice(*files) == [
        "blank lines separate single paragraphs in 2 of 2 files examined: each paragraph is read as "
        "a document of its own; if a file is a document (a book, an article), set corpus.document: file"
    ]
    assert advice(*files, document="file") == []
    assert advice(files[0]) == []  # posts, perhaps


def test_what_is_laid_out_well_is_left_alone(tmp_path: Path, paragraphs: list[str]) -> None:
    sentences = [sentence for each in paragraphs[:300] for sentence in split_sentences(each, "en")]
    (tmp_path / "sentences.txt").write_text("\n".join(sentences))
    (tmp_path / "poems.txt").write_text(SONNET * 30)
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps({"text": each}) for each in sentences))
    (tmp_path / "empty.txt").write_text("")
    package = sorted((Path(bertcli.__file__).parent).rglob("*.py"))
    for files in ([Path("classics")], *([path] for path in tmp_path.iterdir()), package):
        assert advice(*files) == []
        assert advice(*files, format="sentences") == []
    assert advice(tmp_path / "rows.jsonl", format="jsonl") == []


def test_it_is_said_by_prepare_and_by_check_data(tmp_path: Path, paragraphs: list[str]) -> None:
    files = books(tmp_path, paragraphs[:200], 72, "\n\n")
    corpus = {"files": [str(file) for file in files], "language": "sv"}
    value = {"output_dir": str(tmp_path / "run"), "corpus": corpus, "tokenizer": {"vocab_size": 400}}
    config, said = decide_recipe(check_config(PretrainConfig, value, "test"), lambda line: None), list[str]()
    _, findings = check_pretraining(config, False, lambda line: None, 0)
    assert any("hard-wrapped at about 72" in finding.problem for finding in findings)
    prepare_store(config, said.append)
    assert said[0].startswith("warning: the text is hard-wrapped at about 72 characters")
    assert "set corpus.join_lines: true and corpus.document: file" in said[0]
    assert said[1] == "sentences: there are no rules for sv; those for en are used"


def test_each_source_is_judged_by_its_own_keys(tmp_path: Path, paragraphs: list[str]) -> None:
    one, two = books(tmp_path, paragraphs, 72, "\n\n")
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join(json.dumps({"text": each}) for each in paragraphs))
    web = {"name": "web", "files": str(rows), "format": "jsonl"}
    read_well = {"name": "books", "files": str(one), "format": "text"}
    read_well |= {"join_lines": True, "document": "file"}
    read_badly = {"name": "more", "files": str(two), "format": "text"}
    corpus = CorpusConfig.model_validate({"sources": [web, read_well, read_badly], "format": "jsonl"})
    (found,) = layout_advice(corpus_files(corpus), corpus)
    assert found.problem.startswith("source more: the text is hard-wrapped at about 72 characters in 1 of 1")
