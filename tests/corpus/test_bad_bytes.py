"""Bytes that are not in the encoding of their file: refused, replaced, or left out with their lines; never
another encoding for their sake."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bertcli.advice.init.kinds import detect_encoding
from bertcli.config.corpus import CorpusConfig, fits
from bertcli.config.section import Decoding
from bertcli.config.task import TaskSettings
from bertcli.corpus import streams
from bertcli.corpus.documents import read_paragraphs
from bertcli.corpus.streams import find_bad_lines, read_lines
from bertcli.system.errors import UserError
from bertcli.tasks.files import read_examples

TEXTS = {
    "en": "He said “no” at the café, and the naïve façade fell.",
    "de": "Die Straße führt über den Fluß und die schöne Brücke zum Schloß.",
    "ru": "Все счастливые семьи похожи друг на друга, каждая несчастлива по-своему.",
    "ja": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "zh": "学而时习之，不亦说乎？有朋自远方来，不亦乐乎？",
}
ENCODINGS = [
    ("utf-8", "en"), ("utf-8", "ru"), ("utf-8", "ja"), ("utf-8-sig", "de"), ("utf-16", "de"),
    ("utf-16-le", "ru"), ("utf-32", "en"), ("cp1252", "de"), ("cp1251", "ru"), ("shift_jis", "ja"),
    ("euc_jp", "ja"), ("gb18030", "zh"),
]  # fmt: skip
"""Encodings with a language; utf-8 is also read with a byte order mark that decides."""
WRONG = {
    "utf-16": b"\x00\xdc", "utf-16-le": b"\x00\xdc", "utf-32": b"\xff\xff\xff\x7f", "cp1252": b"\x81",
    "cp1251": b"\x98", "shift_jis": b"\xfd\xfd", "gb18030": b"\xff", "euc_jp": b"\xff",
}  # fmt: skip
"""Bytes that an encoding does not have; else 0xe9, as in Latin-1."""


SPOILED = [([3], "start"), ([3], "inside"), ([7], "end"), ([1, 2, 6], "inside")]
"""Numbers of lines, and where they hold wrong bytes."""


def lines_of(language: str, number: int = 8) -> list[str]:
    return [f"{n} {TEXTS[language]}" for n in range(number)]


def spoiled(encoding: str, language: str, lines: list[int], where: str) -> bytes:
    """A text some of whose lines hold wrong bytes, at their start, inside or at their end."""
    parts = []
    for number, line in enumerate(lines_of(language)):
        own = (
            f"{line}\n".encode(encoding) if number == 0 else f"{line}\n".encode(encoding.removesuffix("-sig"))
        )
        if number and encoding in ("utf-16", "utf-32"):  # without another mark
            own = own[2 if encoding == "utf-16" else 4 :]
        if number in lines:
            width = {"utf-16": 2, "utf-32": 4, "utf-16-le": 2}.get(encoding, 1)
            at = {"start": 0, "inside": width, "end": len(own) - width}[where]
            own = own[:at] + WRONG.get(encoding, b"\xe9") + own[at:]
        parts.append(own)
    return b"".join(parts)


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize(("lines", "where"), SPOILED)
@pytest.mark.parametrize(("encoding", "language"), ENCODINGS)
def test_bad_bytes_are_refused_replaced_or_left_out(
    tmp_path: Path, encoding: str, language: str, lines: list[int], where: str, compress: bool
) -> None:
    data = spoiled(encoding, language, lines, where)
    path = tmp_path / ("a.txt.gz" if compress else "a.txt")
    path.write_bytes(gzip.compress(data) if compress else data)
    given = "utf-8" if encoding in ("utf-16", "utf-32") else encoding
    count = rf"{len(lines)} of its 8 lines ha(s|ve) such bytes.*corpus\.bad_bytes: replace or skip-line"
    with pytest.raises(UserError, match=rf"{path.name}, line {lines[0] + 1}: byte .*{count}"):
        list(read_lines(path, Decoding(given)))
    right = lines_of(language)
    kept = [line for number, line in enumerate(right) if number not in lines]
    assert list(read_lines(path, Decoding(given, "skip-line"))) == kept
    replaced = list(read_lines(path, Decoding(given, "replace")))
    assert [line for number, line in enumerate(replaced) if number not in lines] == kept
    assert all("\ufffd" in replaced[number] for number in lines)
    bad = find_bad_lines(path, Decoding(given))
    assert (bad.count, bad.first_line, bad.lines) == (len(lines), lines[0] + 1, 8)


@pytest.mark.parametrize("block", [1, 3, 7])
def test_where_blocks_end_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf\xc3\xa9\nn\xe9\xe8\nend \xe2\x82")
    whole = [list(read_lines(path, Decoding("utf-8", how))) for how in ("replace", "skip-line")]
    monkeypatch.setattr(streams, "BLOCK", block)
    assert list(read_lines(path, Decoding("utf-8", "skip-line"))) == whole[1] == ["é"]
    assert [line.rstrip("\ufffd") for line in read_lines(path, Decoding("utf-8", "replace"))] == [
        "é",
        "n",
        "end ",
    ]
    bad = find_bad_lines(path, Decoding())
    assert (bad.count, bad.first_line, bad.lines) == (2, 2, 3)


def table(separator: str, quoted: bool) -> bytes:
    rows = [("text", "label"), ("one", "a"), ("caf\udce9", "b"), ("three", "a"), ("four", "b")]
    file = io.StringIO()
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    csv.writer(file, delimiter=separator, quoting=quoting, lineterminator="\n").writerows(rows)
    return file.getvalue().encode("utf-8", "surrogateescape")


def conll() -> bytes:
    return b"one\tB-A\nday\tO\n\ncaf\xe9\tB-A\nnoir\tO\n\nthree\tO\nx\tB-A\n\nfour\tO\n"


def json_rows(listed: bool) -> bytes:
    rows = [{"text": text, "label": label} for text, label in zip(WORDS, "abab", strict=True)]
    text = (
        json.dumps(rows, indent=1, ensure_ascii=False)
        if listed
        else "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    )
    return text.encode("utf-8", "surrogateescape")


WORDS = ("one", "caf\udce9", "three", "four")
LABELED: dict[str, tuple[Callable[[], bytes], dict[str, object]]] = {
    "a.tsv": (lambda: table("\t", False), {}),
    "a.csv": (lambda: table(",", False), {}),
    "b.csv": (lambda: table(";", True), {}),
    "a.jsonl": (lambda: json_rows(False), {}),
    "a.json": (lambda: json_rows(True), {}),
    "a.txt": (lambda: b"__label__a one\n__label__b caf\xe9\n__label__a three\n__label__b four\n",
              {"format": "fasttext"}),
    "b.txt": (lambda: b"A:a one\nB:b caf\xe9\nA:a three\nB:b four\n", {"format": "trec"}),
    "a.conll": (conll, {"type": "token-classification", "text": None, "label": None}),
}  # fmt: skip


@pytest.mark.parametrize("name", LABELED)
def test_labeled_rows_with_bad_bytes_are_refused_replaced_or_left_out(tmp_path: Path, name: str) -> None:
    make, given = LABELED[name]
    path = tmp_path / name
    path.write_bytes(make())
    keys = {"type": "classification", "text": "text", "label": "label"} | given

    def texts(how: str) -> tuple[list[str], list[str]]:
        notes: list[str] = []
        settings = TaskSettings.model_validate(keys | {"bad_bytes": how})
        examples = read_examples(path, settings, labeled=True, note=notes.append)
        return [example.texts[0].split()[0] for example in examples], [n for n in notes if "not utf-8" in n]

    with pytest.raises(UserError, match=rf"{name}, line .*1 of its .*task\.bad_bytes: replace or skip-line"):
        texts("refuse")
    replaced, (note,) = texts("replace")
    assert (replaced, r"caf\xe9" in note) == (["one", "caf\ufffd", "three", "four"], True)
    left, (note,) = texts("skip-line")
    assert (left, "1 line is left out" in note) == (["one", "three", "four"], True)


def test_a_file_of_one_json_value_has_no_lines_to_leave_out(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'{"data": [{"title": "caf\xe9"}]}')
    settings = TaskSettings(type="question-answering", bad_bytes="skip-line")
    with pytest.raises(UserError, match=r"no lines that could be left out; set task.bad_bytes: replace"):
        list(read_examples(path, settings, labeled=True))


@pytest.mark.parametrize("listed", [False, True])
def test_json_of_a_corpus_loses_the_document_alone(tmp_path: Path, listed: bool) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(json_rows(listed))
    corpus = CorpusConfig(files=[str(path)], format="jsonl", bad_bytes="skip-line")
    assert [text for text in read_paragraphs(path, corpus) if text] == ["one", "three", "four"]


def test_each_file_is_read_in_its_own_encoding(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("new.txt", "old.txt", "older [1].txt")]
    for path, encoding in zip(paths, ("utf-8", "cp1252", "latin-1"), strict=True):
        path.write_text("Fluß\n", encoding=encoding)
    corpus = CorpusConfig(
        files=[str(tmp_path)], encodings={str(paths[2]): "latin-1", f"{tmp_path}/old*.txt": "cp1252"}
    )
    assert [next(iter(read_paragraphs(path, corpus))) for path in paths] == ["Fluß"] * 3


def test_a_pattern_of_encodings_means_the_files_that_it_means_in_files(tmp_path: Path) -> None:
    below = tmp_path / "new" / "newer"
    below.mkdir(parents=True)
    (tmp_path / "old.txt").touch()
    (below / "b.txt").touch()
    (tmp_path / "link.doc").symlink_to(tmp_path / "old.txt")
    for pattern, found in {
        "*.txt": {"old.txt", "link.doc"},  # the file behind the link
        "**/*.txt": {"old.txt", "b.txt", "link.doc"},
        "new/**": {"b.txt"},
        "*/*/b.txt": {"b.txt"},
        "*.doc": {"link.doc"},
        "old.txt": {"old.txt", "link.doc"},
    }.items():
        files = [tmp_path / "old.txt", below / "b.txt", tmp_path / "link.doc"]
        assert {path.name for path in files if fits(path, f"{tmp_path}/{pattern}")} == found, pattern


def name_of(data: bytes) -> str:
    found = detect_encoding(data)
    assert found is not None
    return found.name


@pytest.mark.parametrize("bad", [1, 20])
@pytest.mark.parametrize("language", TEXTS)
def test_text_that_is_nearly_all_utf_8_is_utf_8(language: str, bad: int) -> None:
    good = f"{TEXTS[language]}\n".encode() * 100
    assert name_of(good + b"caf\xe9 and na\xefve\n" * bad + good) == "utf-8"
    one_line = TEXTS[language].encode() * 40
    assert name_of(one_line + b" \xe9 " + one_line) == "utf-8"


@pytest.mark.parametrize(("encoding", "language"), [each for each in ENCODINGS if "utf" not in each[0]])
def test_a_legacy_text_is_not_taken_as_damaged_utf_8(encoding: str, language: str) -> None:
    data = "\n".join(lines_of(language, 60)).encode(encoding)
    assert name_of(data) != "utf-8"


def test_a_file_of_two_encodings_is_refused() -> None:
    lines = [TEXTS["de"].encode("cp1252" if number % 3 else "utf-8") for number in range(60)]
    with pytest.raises(UserError, match="20 lines are UTF-8 and 40 are in another encoding"):
        detect_encoding(b"\n".join(lines))
