"""Files -> lines: compression, line ends, encodings, and every way in which bytes can be wrong."""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import assume, given
from hypothesis import strategies as st

from bertcli.config.section import Decoding
from bertcli.corpus import streams
from bertcli.corpus.streams import deciding_mark, import_extra, read_lines
from bertcli.system.errors import UserError


def write(path: Path, data: bytes) -> Path:
    if path.suffix == ".gz":
        data = gzip.compress(data)
    if path.suffix == ".zst":
        data = zstandard.ZstdCompressor(write_checksum=True).compress(data)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("suffix", [".txt", ".gz", ".zst"])
def test_only_a_newline_ends_a_line(tmp_path: Path, suffix: str):
    text = "\ufeffone\u2028still one\x0c\x85\r\ntwo\n\nfour, without an end"
    path = write(tmp_path / f"text{suffix}", text.encode())
    expected = ["one\u2028still one\x0c\x85\r", "two", "", "four, without an end"]
    assert list(read_lines(path, Decoding())) == expected


@given(text=st.text(alphabet="aé日🎉\r\n ", max_size=60), block=st.integers(1, 7))
def test_blocks_of_any_size_give_the_same_lines(
    tmp_path_factory: pytest.TempPathFactory, text: str, block: int
):
    assume("\n" in text or text.count("\r") < 2)
    path = write(tmp_path_factory.getbasetemp() / "blocks.txt", text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "BLOCK", block)
        assert list(read_lines(path, Decoding())) == text.removesuffix("\n").split("\n") * bool(text)


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252", "gb18030"])
def test_other_encodings_are_read_by_name(tmp_path: Path, encoding: str):
    path = write(tmp_path / "text.txt", "é line\nand ü\n".encode(encoding))
    assert list(read_lines(path, Decoding(encoding))) == ["é line", "and ü"]


def test_parts_of_a_compressed_file_follow_each_other(tmp_path: Path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    (tmp_path / "a.zst").write_bytes(zstandard.compress(b"one\n") + zstandard.compress(b"two\n"))
    assert [list(read_lines(tmp_path / name, Decoding())) for name in ("a.gz", "a.zst")] == [
        ["one", "two"]
    ] * 2


def test_progress_adds_up_to_the_size_on_disk(tmp_path: Path):
    path = write(tmp_path / "text.gz", b"some text\n" * 300_000)
    seen: list[int] = []
    for _ in read_lines(path, Decoding(), seen.append):
        pass
    assert sum(seen) == path.stat().st_size


@pytest.mark.parametrize("suffix", [".txt", ".gz"])
@pytest.mark.parametrize("offset", [0, 5, (1 << 20) - 1, (1 << 20) + 3])
def test_wrong_bytes_are_named_by_file_line_and_offset(tmp_path: Path, suffix: str, offset: int):
    path = write(tmp_path / f"text{suffix}", b"a" * offset + b"\xe9l\n")
    message = rf"text{suffix}, line 1: byte {offset} \(0xe9\) is not utf-8: .*; 1 of its 1 lines.*bad_bytes"
    with pytest.raises(UserError, match=message):
        list(read_lines(path, Decoding()))


@pytest.mark.parametrize("suffix", [".txt", ".gz", ".zst"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_byte_order_mark_decides_over_utf_8(tmp_path: Path, encoding: str, suffix: str):
    path = write(tmp_path / f"text{suffix}", "\ufeffone\n\u010a \u0a0d é日🎉\r\n".encode(encoding))
    for name in ("utf-8", "UTF8", "utf-8-sig", encoding[:6]):
        assert list(read_lines(path, Decoding(name))) == ["one", "\u010a \u0a0d é日🎉\r"]
    assert [deciding_mark(path, name) for name in ("utf-8", "cp1252", "none")] == [encoding[:6], None, None]
    with pytest.raises(
        UserError, match=rf"begins like {encoding[:6].upper()}: set corpus.encoding: {encoding[:6]}$"
    ):
        list(read_lines(path, Decoding("cp1252")))


def test_without_a_byte_order_mark_the_encoding_must_be_named(tmp_path: Path):
    path = write(tmp_path / "text.txt", "one line of text\n".encode("utf-16-le"))
    with pytest.raises(UserError, match=r"begins like UTF-16: set corpus.encoding: utf-16-le"):
        list(read_lines(path, Decoding()))
    assert deciding_mark(path, "utf-8") is None
    assert deciding_mark(write(tmp_path / "bom.txt", "\ufeffone".encode()), "utf-8") is None
    assert deciding_mark(tmp_path / "nowhere.txt", "utf-8") is None


def test_wrong_bytes_after_a_byte_order_mark_are_of_its_encoding(tmp_path: Path):
    path = write(tmp_path / "text.txt", "\ufeffone\n".encode("utf-16-le") + b"\x00\xdc\n\0")
    with pytest.raises(UserError, match=r"byte 10 \(0x00dc\) is not utf-16: illegal encoding"):
        list(read_lines(path, Decoding()))


def test_lines_that_end_as_on_old_macs_are_an_error(tmp_path: Path):
    path = write(tmp_path / "text.txt", b"one\rtwo\r")
    with pytest.raises(UserError, match=r"text.txt: its lines end with a carriage return alone.*tr '\\r'"):
        list(read_lines(path, Decoding()))


def test_a_character_cut_by_the_end_is_wrong_where_it_starts(tmp_path: Path):
    path = write(tmp_path / "text.txt", "abcé".encode()[:-1])
    with pytest.raises(UserError, match=r"byte 3 .* unexpected end of data"):
        list(read_lines(path, Decoding()))


@pytest.mark.parametrize("encoding", ["utf-9", "hex", "rot13", "idna", "utf-7", "a\0"])
def test_an_unknown_encoding_is_an_error(tmp_path: Path, encoding: str):
    message = rf"corpus.encoding: {re.escape(repr(encoding))} is not an encoding of text files .* cp1252"
    with pytest.raises(UserError, match=message):
        list(read_lines(write(tmp_path / "text.txt", b"a"), Decoding(encoding)))


def damaged(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 0xFF]) + data[len(data) // 2 + 1 :]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_unreadable_compression_is_an_error(tmp_path: Path, suffix: str):
    text = "".join(f"line {i * i}\n" for i in range(20_000)).encode()
    whole = write(tmp_path / f"whole{suffix}", text).read_bytes()
    for name, data, message in (
        ("plain", b"just plain text\n", "not a readable"),
        ("cut", whole[:-20], "truncated"),
        ("damaged", damaged(whole), "not a readable"),
    ):
        path = tmp_path / f"{name}{suffix}"
        path.write_bytes(data)
        with pytest.raises(UserError, match=f"{name}{suffix}: .*{message}"):
            list(read_lines(path, Decoding()))


def test_a_line_without_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(streams, "LONGEST_LINE", 1000)
    with pytest.raises(UserError, match="a line of more than 1,000 characters"):
        list(read_lines(write(tmp_path / "text.txt", b"a" * 2000), Decoding()))


def test_what_cannot_be_opened_is_an_error(tmp_path: Path):
    with pytest.raises(UserError, match="cannot be read: Is a directory"):
        list(read_lines(tmp_path, Decoding()))


def test_a_missing_extra_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    says = r"a.zst is compressed, and zstandard is not installed; .* pip install 'bertcli\[zstd\]'"
    with pytest.raises(UserError, match=says):
        import_extra("zstandard", "zstd", "a.zst is compressed")


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import protobuf_of_nobody.parts", "protobuf_of_nobody, which broken imports, is not installed"),
        ("raise ImportError('libx.so: not found')", r"broken cannot be imported \(libx.so: not found\)"),
    ],
)
def test_the_module_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, says: str
):
    (tmp_path / "broken.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match=rf"an ONNX file is made by broken, and {says}; "):
        import_extra("broken", "onnx", "an ONNX file is made by broken")


@pytest.mark.parametrize("encoding", ["utf-16", "UTF_16"])
def test_without_the_mark_that_its_encoding_asks_for_is_an_error(tmp_path: Path, encoding: str):
    path = tmp_path / "a.txt"
    path.write_bytes(b"The cat sat on the mat. ")
    with pytest.raises(UserError, match=rf"which {encoding} needs.* corpus.encoding to utf-16-le or"):
        list(read_lines(path, Decoding(encoding)))
