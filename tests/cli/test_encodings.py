"""Files in UTF-16, as Windows programs write them, through every command that reads text."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.advice.init.files import speed
from tests.finetunes import spam_config, spam_files
from tests.folders.folders import saved_model
from tests.small_runs import small_config, write_config, write_corpus

NOTE = "is read as UTF-16, as its byte order mark says, not as UTF-8"


def to_utf_16(path: Path) -> Path:
    """The same file with a byte order mark."""
    path.write_bytes(path.read_text(encoding="utf-8").encode("utf-16"))
    return path


def test_a_corpus_in_utf_16_gives_the_same_store(run_bertcli, tmp_path: Path) -> None:
    stores = {}
    for name in ("utf-8", "utf-16"):
        (tmp_path / name).mkdir()
        text = write_corpus(tmp_path / name / "corpus.txt", documents=20)
        config = write_config(tmp_path / f"{name}.yaml", small_config(text, tmp_path / name / "run"))
        if name == "utf-16":
            to_utf_16(text)
            code, out, err = run_bertcli("check-data", config)
            assert (code, "not utf" in out) == (0, False)
            assert f"{text}: {NOTE}\n" in err
        code, _, err = run_bertcli("prepare", config)
        assert code == 0, err
        stores[name] = [
            (tmp_path / name / "store" / part).read_bytes()
            for part in ("train/ids.bin", "tokenizer/vocab.txt")
        ]
        assert err.count(NOTE) == (name == "utf-16")
    assert stores["utf-8"] == stores["utf-16"]
    text.write_text(text.read_text(encoding="utf-16"), encoding="utf-8")
    code, _, err = run_bertcli("prepare", config)
    assert (code, f"{text}: the file changed, from " in err) == (2, True)


def test_labeled_files_in_utf_16_are_learned_from_and_answered(run_bertcli, tmp_path: Path) -> None:
    dev = to_utf_16(spam_files(tmp_path) / "dev.tsv")
    train = to_utf_16(tmp_path / "train.tsv")
    values = spam_config(tmp_path, training={"epochs": 0.3}, checkpoint={"every_steps": 1})
    config = write_config(tmp_path / "config.yaml", values)
    code, out, _ = run_bertcli("check-data", config)
    assert (code, out.splitlines()[:2]) == (0, [f"{path}: {NOTE}" for path in (train, dev)])
    assert "bytes that are not" not in out
    code, _, err = run_bertcli("finetune", config)
    assert code == 0, err
    assert err.count(NOTE) == 2
    measure = ["evaluate", tmp_path / "run", "--data"]
    _, out, err = run_bertcli(*measure, dev, "--json")
    assert (json.loads(out)["rows"], f"{dev}: {NOTE}" in err.splitlines()) == (32, True)
    _, out, err = run_bertcli("predict", tmp_path / "run", "--input", dev)
    assert (len(out.splitlines()), err.splitlines()[0]) == (32, f"{dev}: {NOTE}")
    dev.write_text(dev.read_text(encoding="utf-16"), encoding="utf-8")
    longer = ["--set", "training.epochs=0.5"]
    code, _, err = run_bertcli("finetune", config, "--resume", *longer)
    assert (code, f"cannot resume: {dev} changed since the start of the run" in err) == (2, True)
    to_utf_16(dev)
    assert run_bertcli("finetune", config, "--resume", *longer)[0] == 0


@pytest.mark.parametrize("verb", ["predict-mask", "embed"])
def test_lines_in_utf_16_are_texts(run_bertcli, tmp_path: Path, verb: str) -> None:
    saved_model(tmp_path / "model")
    path = tmp_path / "texts.txt"
    path.write_text("the [MASK] sat\na [MASK]\n", encoding="utf-16")
    options = ["--json"] if verb == "predict-mask" else []
    code, out, err = run_bertcli(verb, tmp_path / "model", "--input", path, *options)
    assert [json.loads(line)["text"] for line in out.splitlines()] == ["the [MASK] sat", "a [MASK]"]
    assert (code, err.splitlines()[0]) == (0, f"{path}: {NOTE}")


def test_a_vocabulary_is_trained_on_and_used_for_utf_16(run_bertcli, tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "text.txt"
    path.write_text("the cat sat on the mat\n" * 9, encoding="utf-16")
    code, _, err = run_bertcli("tokenizer", "train", path, "--output", tmp_path / "new", "--vocab-size", 300)
    assert (code, err.splitlines()[0]) == (0, f"{path}: {NOTE}")
    encode = ["tokenizer", "encode", "--tokenizer", tmp_path / "new", "--json"]
    _, from_file, _ = run_bertcli(*encode, "--input", path)
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        monkeypatch.setattr(sys, "stdin", file)
        code, from_stdin, err = run_bertcli(*encode)
    assert (code, err) == (0, f"standard input: {NOTE}\n")
    assert from_file == from_stdin
    assert json.loads(from_file.splitlines()[0])["text"] == "the cat sat on the mat"


GERMAN = "Die Straße führt über den Fluß und die schöne Brücke trägt den müden Wanderer Nummer {}.\n"


def german(number: int = 160) -> list[str]:
    return [GERMAN.format(each) + "\n" * (each % 4 == 3) for each in range(number)]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`init` in this folder, without measuring."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("bertcli.advice.init.fit_pretraining.start_seconds", lambda module: 1.0)
    measured = speed(0.05, 2000.0, first_seconds=0.1)
    monkeypatch.setattr("bertcli.advice.init.fit_pretraining.probe", lambda plan, seconds: measured)
    monkeypatch.setattr("bertcli.advice.init.fit_pretraining.matmul_rate", lambda *given, **named: 1e9)


def test_one_bad_byte_in_a_corpus_changes_its_line_alone(run_bertcli, quick, tmp_path: Path) -> None:
    lines = [line.encode() for line in german()]
    lines[50] = b"Ein Caf\xe9 am Ufer.\n"
    (tmp_path / "texts.txt").write_bytes(b"".join(lines))
    code, _, err = run_bertcli("init", "texts.txt", "--family", "bert", "--minutes", "0.1")
    assert code == 0, err
    assert (
        "texts.txt: 1 line is read with U+FFFD in place of the bytes, of 200, for bytes that are not utf-8"
        in err
    )
    assert r"line 63: Ein Caf\xe9 am Ufer." in err
    config = (tmp_path / "bertcli.yaml").read_text()
    assert ("encoding" in config, "bad_bytes: replace" in config) == (False, True)
    code, _, err = run_bertcli("prepare", "bertcli.yaml")
    assert (code, err.count(r"line 63: Ein Caf\xe9")) == (0, 1), err
    vocabulary = (tmp_path / "runs/texts/store/tokenizer/vocab.txt").read_text().split()
    assert ("ß" in vocabulary, "ã" in vocabulary) == (True, False)
    code, out, _ = run_bertcli("check-data", "bertcli.yaml")
    assert (code, r"line 63: Ein Caf\xe9" in out) == (0, True)
    other = ("--set", "corpus.store=other")
    code, _, err = run_bertcli("prepare", "bertcli.yaml", "--set", "corpus.bad_bytes=refuse", *other)
    assert code == 2
    assert "texts.txt, line 63: byte " in err
    assert "1 of its 200 lines has such bytes" in err
    assert "corpus.bad_bytes: replace or skip-line" in err


def test_each_file_of_a_corpus_has_its_own_encoding(run_bertcli, quick, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    lines = german(240)
    (folder / "new.txt").write_text("".join(lines[:160]), encoding="utf-8")
    (folder / "old.txt").write_text("".join(lines[160:]), encoding="cp1252")
    code, _, err = run_bertcli("init", "texts", "--family", "bert", "--minutes", "0.1")
    assert code == 0, err
    code, _, err = run_bertcli("prepare", "bertcli.yaml")
    assert code == 0, err
    vocabulary = (tmp_path / "runs/texts/store/tokenizer/vocab.txt").read_text().split()
    assert ("ß" in vocabulary, "ã" in vocabulary) == (True, False)
    code, out, err = run_bertcli("check-data", "bertcli.yaml")
    assert (code, "0 lines with mojibake" in out, "bytes that are not" in out) == (0, True, False), out
    given = ("--set", "corpus.encodings={nowhere.txt: cp1252}", "--set", "corpus.store=other")
    code, _, err = run_bertcli("prepare", "bertcli.yaml", *given)
    assert (code, "corpus.encodings: nowhere.txt: no file of the corpus" in err) == (2, True)


def test_a_bad_byte_in_a_labeled_file_changes_its_row_alone(run_bertcli, quick, tmp_path: Path) -> None:
    spam_files(tmp_path)
    train = tmp_path / "train.tsv"
    header, *rows = train.read_bytes().splitlines(keepends=True)
    rows = [row.rstrip(b"\n") + " über\n".encode() for row in rows]
    rows[3] = b"ham\tcaf\xe9 now\n"
    train.write_bytes(b"".join([header, *rows]))
    config = write_config(tmp_path / "config.yaml", spam_config(tmp_path, training={"epochs": 0.1}))
    code, _, err = run_bertcli("finetune", config)
    assert (code, "train.tsv, line 5: byte " in err, "task.bad_bytes" in err) == (2, True, True)
    code, _, err = run_bertcli("finetune", config, "--set", "task.bad_bytes=skip-line")
    assert code == 0, err
    assert f"{train}: 1 line is left out, of {len(rows) + 1}, for bytes that are not utf-8" in err
    saved = json.loads((tmp_path / "run/model/config.json").read_text())
    assert "bad_bytes" not in saved["bertcli_task"]  # the model reads other files


@pytest.mark.parametrize("given", ["pipe", "pi*", "texts/pi*"])
def test_what_is_no_plain_file_is_refused_at_once(run_bertcli, tmp_path: Path, given: str) -> None:
    (tmp_path / "texts").mkdir()
    for folder in (tmp_path, tmp_path / "texts"):
        os.mkfifo(folder / "pipe")
    config = write_config(tmp_path / "config.yaml", small_config(tmp_path / given, tmp_path / "run"))
    for command in (("prepare", config), ("init", tmp_path / given)):
        code, _, err = run_bertcli(*command)
        assert (code, "is no plain file, but a pipe, a device or a socket" in err) == (2, True), err
    spam_files(tmp_path)
    values = write_config(tmp_path / "task.yaml", spam_config(tmp_path))
    code, _, err = run_bertcli("finetune", values, "--set", f"task.train={tmp_path}/pipe")
    assert (code, "is no plain file" in err) == (2, True)
