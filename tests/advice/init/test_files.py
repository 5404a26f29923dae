"""What a user names is found, and what is no text is told."""

from __future__ import annotations

import gzip
import shlex
from pathlib import Path

import pytest

from bertcli.advice.init.files import check_encodings, find_files
from bertcli.system.errors import UserError
from tests.advice.init.files import messages, write_csv, write_jsonl

TEXT = "A first paragraph of a text.\nA second one follows it.\n\nAnother document begins here.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "texts"
    made.mkdir()
    for name in ("one.txt", "two.txt"):
        (made / name).write_text(TEXT * 20, encoding="utf-8")
    return made


def found(path: Path, output: Path | None = None):
    return find_files([str(path)], output or path.parent / "bertcli.yaml")


def test_a_folder_of_one_kind_is_named_as_it_was_given(folder: Path) -> None:
    files = found(folder)
    assert (files.kind, files.names, len(files.files)) == ("text", [str(folder)], 2)
    assert files.left_out == []


def test_a_folder_of_several_kinds_gives_those_with_the_most_bytes(folder: Path) -> None:
    (folder / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    write_csv(folder / "table.csv", messages(5))
    files = found(folder)
    assert files.names == [str(folder / "**" / "*.txt")]
    assert [file.path.name for file in files.files] == ["one.txt", "two.txt"]
    assert any("is a PNG picture, not text" in line for line in files.left_out)
    assert any("table.csv: is a table (CSV)" in line for line in files.left_out)


def test_of_many_files_the_few_of_another_suffix_are_left_out(folder: Path) -> None:
    for number in range(500):
        (folder / f"text-{number:03}.txt").write_text(TEXT)
    for number in (100, 104):  # neither is among every third file
        (folder / f"text-{number}.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    files = found(folder)
    assert files.names == [str(folder / "**" / "*.txt")]
    assert len(files.files) == 502
    assert any("is a PNG picture, not text" in line for line in files.left_out)


def test_files_without_a_suffix_of_their_own_are_named_one_by_one(folder: Path) -> None:
    (folder / "broken.txt").write_bytes(bytes(range(256)) * 10)
    files = found(folder)
    assert files.names == [str(folder / "one.txt"), str(folder / "two.txt")]


def test_the_config_that_will_be_written_is_no_text_of_its_folder(folder: Path) -> None:
    assert found(folder, folder / "bertcli.yaml").names == [str(folder / "**" / "*.txt")]


def test_compressed_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "text.txt.gz"
    path.write_bytes(gzip.compress((TEXT * 10).encode()))
    assert found(path).seen[0].lines[0] == "A first paragraph of a text."


def test_a_bundled_table_is_found_by_its_name(tmp_path: Path) -> None:
    assert find_files(["sms-spam"], tmp_path / "c.yaml").kind == "tsv"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "text.txt: is empty"),
        (b" \n\n", "text.txt: is empty"),
        (b"\x7fELF" + bytes(100), "text.txt: is a program, not text; leave it out"),
        (bytes(range(256)) * 10, "text.txt: is not text: it has control characters"),
        (b"%PDF-1.7\nabc", "text.txt: is a PDF, not text; extract its text first"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        found(path)
    assert message in str(error.value)


def test_a_damaged_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.txt.gz"
    path.write_bytes(gzip.compress(TEXT.encode() * 100)[:-20])
    with pytest.raises(UserError, match=r"the .gz ends in mid-stream"):
        found(path)


def test_a_missing_path_is_named_without_a_key_of_a_config(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^/.*nowhere.txt: no such file or folder"):
        found(tmp_path / "nowhere.txt")


def test_files_in_two_encodings_each_have_their_own_or_the_command_to_convert(folder: Path) -> None:
    german = "Die Straße führt über den Fluß und die Brücke zum Schloß.\n" * 5
    path = folder / "one's.txt"
    path.write_text(german, encoding="cp1252")
    (folder / "two.txt").write_text(german, encoding="utf-8")
    files = found(folder)
    assert (files.encoding.name, files.others) == ("utf-8", {str(path): "cp1252"})
    with pytest.raises(UserError, match="in several encodings: 1 in cp1252") as error:
        check_encodings(files.seen)
    command = str(error.value).partition("for example: ")[2]
    given = ["iconv", "-f", "cp1252", "-t", "utf-8", str(path), ">", "one's.txt.utf8"]
    assert shlex.split(command) == given


def test_plain_ascii_is_in_any_encoding(folder: Path) -> None:
    german = "Die Straße führt über den Fluß und die Brücke zum Schloß.\n" * 5
    (folder / "one.txt").write_text(german, encoding="cp1252")
    assert found(folder).encoding.name == "cp1252"


@pytest.mark.parametrize("text", [TEXT, "Die Straße führt über den Fluß.\n"])
def test_files_with_a_byte_order_mark_are_read_beside_those_in_utf_8(folder: Path, text: str) -> None:
    (folder / "one.txt").write_text(text, encoding="utf-16")
    (folder / "two.txt").write_text(text, encoding="utf-8")
    files = found(folder)
    assert files.encoding.name == "utf-8"
    assert [each.lines[0] for each in files.seen] == [text.splitlines()[0]] * 2
    (folder / "two.txt").write_text("Die Straße führt über den Fluß.\n" * 5, encoding="cp1252")
    files = found(folder)
    assert (files.encoding.name, files.others) == ("utf-8", {str(folder / "two.txt"): "cp1252"})


def test_json_lines_are_told_by_content(tmp_path: Path) -> None:
    assert found(write_jsonl(tmp_path / "x.txt", [{"a": "b"}] * 4)).kind == "jsonl"
