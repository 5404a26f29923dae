"""`bertcli tokenizer train` and `encode` through the real command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bertcli.tokenizer.tokenizer import Tokenizer
from tests.small_runs import run_cli, run_warm, write_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_corpus(folder / "corpus.txt")
    result = run_cli(
        "tokenizer", "train", folder / "corpus.txt", "--output", folder / "out", "--vocab-size", 400
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{folder / 'out'}\n"
    return folder


def test_train_writes_a_tokenizer(folder: Path):
    assert sorted(path.name for path in (folder / "out").iterdir()) == [
        "tokenizer.json", "tokenizer_config.json", "vocab.txt"
    ]  # fmt: skip
    tokenizer = Tokenizer.load(folder / "out")
    assert (tokenizer.vocab_size, tokenizer.lowercase) == (400, True)
    assert json.loads((folder / "out" / "tokenizer_config.json").read_text())["strip_accents"] is False


def test_accents_are_stripped_when_asked(run_bertcli, tmp_path: Path):
    (tmp_path / "corpus.txt").write_text("Das schöne Haus, das schöne Kind.\n" * 3)
    command = ["tokenizer", "train", tmp_path / "corpus.txt", "--vocab-size", 300, "--output"]
    assert run_bertcli(*command, tmp_path / "kept")[0] == 0
    assert run_bertcli(*command, tmp_path / "stripped", "--strip-accents")[0] == 0
    for name, words in (("kept", "schöne haus"), ("stripped", "schone haus")):
        tokenizer = Tokenizer.load(tmp_path / name)
        assert tokenizer.strip_accents is (name == "stripped")
        assert tokenizer.decode(tokenizer.encode("Schöne Haus")) == words


def test_train_takes_the_format_and_the_case(folder: Path):
    lines = (folder / "corpus.txt").read_text().split("\n")
    rows = "".join(json.dumps({"body": line}) + "\n" for line in lines)
    (folder / "corpus.jsonl").write_text(rows)
    result = run_cli("tokenizer", "train", folder / "corpus.jsonl", "--format", "jsonl", "--text-key", "body",
                     "--cased", "--vocab-size", 500, "--output", folder / "cased")  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert Tokenizer.load(folder / "cased").lowercase is False


def test_train_overwrites_nothing(folder: Path):
    result = run_cli(
        "tokenizer", "train", folder / "corpus.txt", "--output", folder / "out", "--vocab-size", 300
    )
    assert result.returncode == 2
    assert "already holds a tokenizer" in result.stderr
    result = run_cli("tokenizer", "train", folder / "corpus.txt", "--output", folder / "corpus.txt")
    assert (result.returncode, "a file; name a folder" in result.stderr) == (2, True)


def test_encode_shows_tokens_and_ids(folder: Path):
    result = run_cli("tokenizer", "encode", "--tokenizer", folder / "out", "The [MASK]!", "", "--json")
    first, second = map(json.loads, result.stdout.splitlines())
    tokenizer = Tokenizer.load(folder / "out")
    assert first["text"] == "The [MASK]!"
    assert first["ids"] == [2, *tokenizer.encode("the [mask]!"), 3]
    assert first["tokens"] == [tokenizer.token(i) for i in first["ids"]]
    assert "[MASK]" not in first["tokens"]
    special = ["[CLS]", "[SEP]"]
    assert second == {"text": "", "ids": [2, 3], "tokens": special, "readable": special}


def test_encode_shows_byte_level_pieces_as_text_too(run_bertcli, tmp_path: Path):
    (tmp_path / "corpus.txt").write_text("ไปตลาด แม่\n" * 3, encoding="utf-8")
    out = tmp_path / "out"
    command = ["tokenizer", "train", tmp_path / "corpus.txt", "--kind", "byte-bpe", "--vocab-size", 400]
    assert run_bertcli(*command, "--output", out)[0] == 0
    encode = ["tokenizer", "encode", "--tokenizer", out]
    _, shown, _ = run_bertcli(*encode, "ไปตลาด")
    tokens, readable, ids = shown.splitlines()
    assert (tokens.startswith("[CLS] Ġà¹Ħ"), readable) == (True, "[CLS] ▁ไปตลาด [SEP]")
    _, shown, _ = run_bertcli(*encode, "ไปตลาด", "--json")
    row = json.loads(shown)
    assert (row["tokens"], row["readable"]) == (tokens.split(" "), readable.split(" "))
    assert row["ids"] == [int(each) for each in ids.split(" ")]


@pytest.mark.parametrize("language", ["tr", "en"])
def test_letters_lose_their_case_by_the_language(run_bertcli, tmp_path: Path, language: str):
    (tmp_path / "corpus.txt").write_text("IŞIK ve İZMİR.\n" * 3, encoding="utf-8")
    command = ["tokenizer", "train", tmp_path / "corpus.txt", "--vocab-size", 300, "--language", language]
    assert run_bertcli(*command, "--output", tmp_path / "out")[0] == 0
    read = Tokenizer.load(tmp_path / "out")
    expected = {"tr": "ışık ve izmir .", "en": "işik ve izmir ."}[language]
    assert read.join(map(read.token, read.encode("IŞIK ve İZMİR."))) == expected


def test_encode_reads_a_file_or_standard_input(folder: Path):
    (folder / "lines.txt").write_text("one\ntwo\u2028still two\n")
    by_file = run_cli(
        "tokenizer", "encode", "--tokenizer", folder / "out", "--input", folder / "lines.txt", "--json"
    )
    by_pipe = run_warm(
        "tokenizer", "encode", "--tokenizer", folder / "out", "--json", input="one\ntwo\u2028still two\n"
    )
    assert by_file.stdout == by_pipe.stdout
    assert [json.loads(row)["text"] for row in by_file.stdout.split("\n")[:-1]] == [
        "one",
        "two\u2028still two",
    ]
    plain = run_cli("tokenizer", "encode", "--tokenizer", folder / "out", "!")
    assert plain.stdout == f"[CLS] ! [SEP]\n2 {Tokenizer.load(folder / 'out').encode('!')[0]} 3\n"
    both = run_cli("tokenizer", "encode", "--tokenizer", folder / "out", "a", "--input", folder / "lines.txt")
    assert (both.returncode, "give texts or --input, not both" in both.stderr) == (2, True)
