import io

import pytest

from bertcli.inference.lines import Line, read_lines
from bertcli.system.errors import UserError


class Pipe(io.TextIOWrapper):
    def __init__(self, content: bytes, terminal: bool = False):
        super().__init__(io.BytesIO(content), encoding="utf-8")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def written(tmp_path, content: bytes):
    path = tmp_path / "in.txt"
    path.write_bytes(content)
    return path


def test_texts_of_the_command_line():
    lines = [Line("a b", "text 1"), Line(" ", "text 2"), Line("c", "text 3")]
    assert list(read_lines(["a b", " ", "c"], None)) == lines


def test_blank_lines_of_a_file_are_lines_too(tmp_path):
    path = written(tmp_path, b"\xef\xbb\xbf\r\none \r\n  \n\xc3\xa4\xe2\x80\xa8b\n\n")
    texts = ["", "one ", "  ", "ä\u2028b", ""]
    assert list(read_lines([], path)) == [
        Line(text, f"{path}, line {number}") for number, text in enumerate(texts, start=1)
    ]


@pytest.mark.parametrize(
    "dash", [{"texts": ["-"], "file": None}, {"texts": [], "file": "-"}, {"texts": [], "file": None}]
)
def test_standard_input(monkeypatch, dash):
    monkeypatch.setattr("sys.stdin", Pipe(b"one\ntwo\n"))
    assert [line.text for line in read_lines(**dash)] == ["one", "two"]


def test_a_file_is_read_line_by_line(tmp_path):
    lines = read_lines([], written(tmp_path, b"good\n\xff\n"))
    assert next(lines).text == "good"
    with pytest.raises(UserError, match=r"in\.txt, line 2: not UTF-8 at byte 5; convert it first"):
        next(lines)


def test_bundled_sentences_by_their_name_unless_a_file_has_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert all("[MASK]" in line.text for line in read_lines([], "quickstart-sentences"))
    (tmp_path / "quickstart-sentences").write_text("mine")
    assert list(read_lines([], "quickstart-sentences")) == [Line("mine", "quickstart-sentences, line 1")]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_byte_order_mark_decides(tmp_path, monkeypatch, capsys, encoding):
    content = "\ufeffone\r\n\u010a é🎉\n".encode(encoding)
    path = written(tmp_path, content)
    expected = ["one", "\u010a é🎉"]
    assert [line.text for line in read_lines([], path)] == expected
    monkeypatch.setattr("sys.stdin", Pipe(content))
    assert [line.text for line in read_lines([], None)] == expected
    said = f"is read as {encoding[:6].upper()}, as its byte order mark says, not as UTF-8\n"
    assert capsys.readouterr().err == f"{path}: {said}standard input: {said}"


def test_wrong_bytes_after_a_byte_order_mark_have_their_place(tmp_path):
    lines = read_lines([], written(tmp_path, "\ufeffgood\n".encode("utf-16-le") + b"\x00\xdc\n\0"))
    with pytest.raises(UserError, match=r"in\.txt, line 2: not UTF-16 at byte 12; make the file again"):
        list(lines)


def test_nothing_to_read(tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"in\.txt: holds no text"):
        list(read_lines([], written(tmp_path, b"\n \n")))
    with pytest.raises(UserError, match="the command line holds no text"):
        read_lines(["", " "], None)
    monkeypatch.setattr("sys.stdin", Pipe(b"", terminal=True))
    with pytest.raises(UserError, match="no text: give it after MODEL, or --input FILE, or pipe it in"):
        read_lines([], None)
    monkeypatch.setattr("sys.stdin", Pipe(b""))
    with pytest.raises(UserError, match="standard input: holds no text"):
        list(read_lines([], None))


def test_unusable_inputs(tmp_path):
    with pytest.raises(UserError, match=r"nowhere\.txt: cannot be read: No such file"):
        read_lines([], tmp_path / "nowhere.txt")
    with pytest.raises(UserError, match="cannot be read: Is a directory"):
        read_lines([], tmp_path)
    with pytest.raises(UserError, match="give the text itself or --input FILE, not both"):
        read_lines(["a"], tmp_path / "in.txt")
    with pytest.raises(UserError, match="text 1: is not UTF-8"):
        read_lines(["caf\udce9"], None)
