"""Reading over wrong bytes: what is right comes through, what is wrong is noted at its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bertcli.checks.wrong_bytes import SUBSTITUTE, WrongBytes, noting_encoding
from bertcli.errors import UserError
from bertcli.text import streams
from bertcli.text.file_kinds import describe_kind
from bertcli.text.streams import read_lines
from bertcli.text.wide_encodings import wide_encoding


def read(path: Path, encoding: str) -> tuple[list[str], list[tuple[int, bytes]]]:
    noted: list[tuple[int, bytes]] = []
    with noting_encoding(encoding, "corpus.encoding", lambda at, data, _: noted.append((at, data))) as name:
        return list(read_lines(path, name)), noted


@pytest.mark.parametrize("block", [1, 3, 1 << 20])
@pytest.mark.parametrize(
    ("encoding", "data", "lines", "noted"),
    [
        ("utf-8", b"\xef\xbb\xbf\xc3\xa9\nn\xe9\xe8\nend", ["é", "n??", "end"], [(7, b"\xe9"), (8, b"\xe8")]),
        ("utf-8", b"cut \xe2\x82", ["cut ?"], [(4, b"\xe2\x82")]),
        ("cp1252", b"ok\n\x93right\x94 \x81", ["ok", "“right” ?"], [(11, b"\x81")]),
        ("gb18030", b"\xc4\xe3\n\xff!", ["你", "?!"], [(3, b"\xff")]),
        ("utf-16-le", b"a\0\x00\xdcb\0", ["a?b"], [(2, b"\x00\xdc")]),
    ],
)  # fmt: skip
def test_wrong_bytes_are_noted_and_read_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, encoding: str, data: bytes, lines, noted
) -> None:
    monkeypatch.setattr(streams, "BLOCK", block)
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    assert read(path, encoding) == ([line.replace("?", SUBSTITUTE) for line in lines], noted)
    with pytest.raises(UserError, match=f"a.txt: byte {noted[0][0]} "):
        list(read_lines(path, encoding))


def test_a_byte_order_mark_decides_here_too(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffé\n".encode("utf-16-le"))
    assert read(path, "utf-8") == (["é"], [])
    path.write_bytes(path.read_bytes() + b"\x00\xdcb\0")
    assert read(path, "utf-8") == (["é", f"{SUBSTITUTE}b"], [(6, b"\x00\xdc")])
    wrong = WrongBytes("corpus.encoding", "utf-8")
    wrong.note(6, b"\x00\xdc", "illegal encoding")
    (finding,) = wrong.findings(path, share=1.0)
    assert finding.problem == f"{path}: bytes that are not utf-16, in 1 place"


@given(parts=st.lists(st.one_of(st.text().map(str.encode), st.binary(max_size=4)), max_size=8))
def test_it_reads_like_the_decoder_of_python(
    parts: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = b"".join(parts)
    assume(b"\n" in data or data.count(b"\r") < 2)
    assume(describe_kind(data) is None and wide_encoding(data) is None)
    path = tmp_path_factory.mktemp("any") / "a.txt"
    path.write_bytes(data)
    lines, noted = read(path, "utf-8")
    right = path.read_bytes().decode("utf-8", errors="replace").removeprefix("\ufeff")
    assert "\n".join(lines).replace(SUBSTITUTE, "\ufffd") == right.removesuffix("\n").replace(
        SUBSTITUTE, "\ufffd"
    )
    assert all(path.read_bytes()[at : at + len(data)] == data for at, data in noted)


def test_the_name_is_unknown_afterward(tmp_path: Path) -> None:
    with noting_encoding("utf-8", "corpus.encoding", print) as name:
        pass
    with pytest.raises(LookupError):
        "a".encode(name)


def test_an_unknown_encoding_is_the_usual_error() -> None:
    with (
        pytest.raises(UserError, match=r"task.encoding: 'klingon' is not an encoding"),
        noting_encoding("klingon", "task.encoding", print),
    ):
        pass
