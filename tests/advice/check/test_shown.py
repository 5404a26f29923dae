"""What `check-data` says of text in other scripts, and the line that it shows in both forms."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from bertcli.advice.check.corpus_findings import READS
from bertcli.advice.check.pretraining import CorpusReport, check_pretraining
from bertcli.config.load import check_config
from bertcli.config.schema import PretrainConfig
from bertcli.corpus.build import prepare_store
from bertcli.tokenizer.train import train_tokenizer
from bertcli.training.recipe import decide_recipe

LINES = {
    "hi": "हम बगीचे में घूमने गए, क़िला ज़मीन पर है।",
    "th": "ภาษา ไทย นี้ ไม่มี ที่ สิ้นสุด น้ำใจ",
    "de": "Die schöne Größe der Straße, ÄRGER und Übermut.",
    "vi": "Tiếng Việt rất ĐẸP, Ữ và Ợ.",
    "ar": "ذَهَبَ مُحَمَّدٌ إِلَى الْمَدْرَسَةِ؟",
}


def checked(tmp_path: Path, text: str | bytes, **sections: Any) -> CorpusReport:
    (tmp_path / "text.txt").write_bytes(text.encode() if isinstance(text, str) else text)
    corpus = {"files": [str(tmp_path / "text.txt")], "heldout_fraction": 0.0} | sections.pop("corpus", {})
    value = {"output_dir": str(tmp_path / "run"), "corpus": corpus, "tokenizer": {"vocab_size": 600}}
    value |= {"data": {"objective": "mlm"}} | sections
    config = decide_recipe(check_config(PretrainConfig, value, "test"), lambda line: None)
    return check_pretraining(config, False, lambda line: None, 0)


def problems(report: CorpusReport) -> str:
    return "\n".join(f"{finding.problem}; {finding.mend}" for finding in report.findings)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("language", LINES)
def test_the_line_that_is_read_is_the_one_that_is_written(tmp_path: Path, language: str, form: Any) -> None:
    line = unicodedata.normalize(form, LINES[language])
    plain = "A line of ascii words.\n" * 3
    report = checked(tmp_path, f"{plain}{line}\n{line}\n", corpus={"language": language})
    assert report.figures["line_written"] == unicodedata.normalize("NFC", line) or form == "NFD"
    read = report.figures["line_read"].replace(" ", "")
    assert read == unicodedata.normalize("NFC", line.lower()).replace(" ", "")
    assert "lose marks" not in problems(report)


def test_marks_that_are_lost_are_said(tmp_path: Path) -> None:
    report = checked(tmp_path, f"{LINES['hi']}\n" * 3, tokenizer={"vocab_size": 600, "strip_accents": True})
    assert "of the words lose marks on their letters: 'हम बगीचे" in problems(report)
    assert "strip_accents: false" in problems(report)
    assert report.figures["line_read"].startswith("हम बगीच म घमन")


def test_a_store_that_stands_shows_its_line(tmp_path: Path) -> None:
    checked(tmp_path, f"{LINES['de']}\n" * 3)
    corpus = {"files": [str(tmp_path / "text.txt")], "heldout_fraction": 0.0}
    value = {"output_dir": str(tmp_path / "run"), "corpus": corpus, "tokenizer": {"vocab_size": 600}}
    given = check_config(PretrainConfig, value | {"data": {"objective": "mlm"}}, "test")
    config = decide_recipe(given, lambda line: None)
    prepare_store(config, lambda line: None)
    report = check_pretraining(config, False, lambda line: None, 0)
    assert (report.figures["tokens_from"], "schöne größe" in report.figures["line_read"]) == ("store", True)


def test_words_too_long_to_be_read_are_not_blamed_on_the_vocabulary(tmp_path: Path) -> None:
    line = "ภาษาไทยนี้ไม่มีที่สิ้นสุดและน้ำใจ" * 6
    report = checked(tmp_path, f"{line}\n" * 30, corpus={"language": "th"}, tokenizer={"vocab_size": 2000})
    assert report.figures["unk_rate"] > 0.9
    assert "a word of more than 100 characters is one unknown token" in problems(report)
    assert "raise tokenizer.vocab_size" not in problems(report)


def test_chinese_is_counted_by_characters(tmp_path: Path) -> None:
    text = "他说这是一个很长的句子，我们在花园里散步。\n" * 20
    train_tokenizer([text], 600).save(tmp_path / "vocabulary")
    report = checked(
        tmp_path, text, corpus={"language": "zh"}, tokenizer={"path": str(tmp_path / "vocabulary")}
    )
    assert report.figures["tokens_per_word"] > 10
    assert report.figures["tokens_per_character"] == pytest.approx(1.0)
    assert "is cut into" not in problems(report)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_byte_order_mark_names_the_encoding(tmp_path: Path, encoding: str) -> None:
    report = checked(tmp_path, "Some lines of text.\nAnd another one.\n".encode(encoding))
    assert report.figures["lines"] == 2
    assert not any(finding.fails for finding in report.findings)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_wide_encodings_are_named(tmp_path: Path, encoding: str) -> None:
    report = checked(tmp_path, "Some lines of text.\nAnd another one.\n".encode(encoding))
    (finding,) = [finding for finding in report.findings if finding.fails]
    assert finding.problem.endswith(f": set corpus.encoding: {encoding}")
    assert "cp1252" not in problems(report)
    read = checked(tmp_path, "Some lines of text.\n".encode(encoding), corpus={"encoding": encoding})
    assert not any(finding.fails for finding in read.findings)


@pytest.mark.parametrize("start", [b"BZh91AY&SY", b"\xfd7zXZ\x00", b"%PDF-1.7\n", b"\x89PNG\r\n\x1a\n"])
def test_what_is_no_text_is_named(tmp_path: Path, start: bytes) -> None:
    report = checked(tmp_path, start + bytes(range(256)) * 4)
    assert "holds no text" not in problems(report)
    assert "corpus.encoding" not in problems(report)
    assert ", not text; " in problems(report)


def test_a_bad_line_is_all_that_is_said(tmp_path: Path) -> None:
    rows = [json.dumps({"text": f"Line {number}. And more."}) for number in range(120)]
    rows[100] = "{not json"
    report = checked(tmp_path, "\n".join(rows), corpus={"format": "jsonl"})
    assert f"{tmp_path / 'text.txt'}, line 101: not JSON" in problems(report)
    assert "holds no text" not in problems(report)


def test_a_text_read_too_often_is_said(tmp_path: Path) -> None:
    text = "".join(f"Word{number} is here. And there.\n\n" for number in range(200))
    report = checked(tmp_path, text, training={"steps": 1_000_000})
    assert f"the run reads the text {report.figures['epochs']:,.0f} times" in problems(report)
    assert report.figures["epochs"] > READS
    few = f"lower training.steps, to about {report.figures['steps_per_epoch'] * READS:,} or less"
    assert few in problems(report)
    assert "the run reads" not in problems(checked(tmp_path, text, training={"steps": 5, "batch_size": 8}))
