"""Files that are no text are known by their first bytes, and no text is taken for one of them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import tarfile
import zipfile
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
import zstandard

from bertcli.config.section import Decoding
from bertcli.corpus.files import START_BYTES, describe_kind
from bertcli.corpus.streams import read_lines
from bertcli.system.errors import UserError

TEXT = b"The garden was dark.\n" * 50


def tar(kind: int) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=kind) as archive:
        info = tarfile.TarInfo("b\u00fccher/eins.txt")
        info.size = len(TEXT)
        archive.addfile(info, io.BytesIO(TEXT))
    return file.getvalue()


def old_tar() -> bytes:
    """As version 7 of Unix wrote it: without a magic number."""
    header = bytearray(tar(tarfile.USTAR_FORMAT))
    header[257:265] = bytes(8)
    total = sum(header[:148]) + sum(header[156:512]) + 8 * 32
    header[148:156] = b"%06o\0 " % total
    return bytes(header)


def zipped(name: str, text: str = "text") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, text)
    return file.getvalue()


def parquet() -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": ["The garden was dark."]}), file)
    return file.getvalue()


KINDS = {
    "ustar": (tar(tarfile.USTAR_FORMAT), "a tar archive"),
    "gnu": (tar(tarfile.GNU_FORMAT), "a tar archive"),
    "pax": (tar(tarfile.PAX_FORMAT), "a tar archive"),
    "v7": (old_tar(), "a tar archive"),
    "zip": (zipped("one.txt"), "a ZIP archive"),
    "docx": (zipped("[Content_Types].xml"), "an office document"),
    "epub": (zipped("mimetype", "application/epub+zip"), "an EPUB book"),
    "doc": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "an office document"),
    "gz": (gzip.compress(TEXT), "compressed with gzip"),
    "zst": (zstandard.compress(TEXT), "compressed with Zstandard"),
    "bz2": (bz2.compress(TEXT), "compressed with bzip2"),
    "xz": (lzma.compress(TEXT), "compressed with xz"),
    "lzma": (lzma.compress(TEXT, lzma.FORMAT_ALONE), "compressed with LZMA"),
    "7z": (b"7z\xbc\xaf\x27\x1c\x00\x04" + bytes(24), "a 7z archive"),
    "rar": (b"Rar!\x1a\x07\x01\x00" + bytes(24), "a RAR archive"),
    "pdf": (b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\n", "a PDF"),
    "png": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a PNG picture"),
    "jpg": (b"\xff\xd8\xff\xe0\x00\x10JFIF", "a JPEG picture"),
    "parquet": (parquet(), "a Parquet file"),
    "pickle": (pickle.dumps({"weights": 1}), "a Python pickle"),
    "sqlite": (b"SQLite format 3\x00\x10\x00", "an SQLite database"),
    "rtf": (rb"{\rtf1\ansi The garden}", "an RTF document"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_text_is_known(kind: str):
    data, name = KINDS[kind]
    found = describe_kind(data[:START_BYTES])
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("kind", ["ustar", "v7", "zip", "bz2", "pdf", "parquet"])
@pytest.mark.parametrize("suffix", ["", ".txt", ".gz", ".zst"])
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_no_reader_takes_it_for_text(tmp_path: Path, kind: str, suffix: str, encoding: str):
    data, name = KINDS[kind]
    packed = {".gz": gzip.compress, ".zst": zstandard.compress}.get(suffix, bytes)(data)
    path = tmp_path / f"corpus{suffix}"
    path.write_bytes(packed)
    with pytest.raises(UserError, match=rf"corpus{suffix}: (this|its content) is {name}, not text; ."):
        list(read_lines(path, Decoding(encoding)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PK is a school.",
        "MZ is how programs for DOS begin, and this is a sentence.",
        "GIF89a is a format of pictures, and this is a sentence.",
        "PAR1 is how a Parquet file begins, and this is a sentence.",
        "%PDF is how a PDF begins.",
        "BZh91 is no bzip2 without what follows.",
        "a" * 600,
        " " * 148 + "0020000\0" + " " * 400,
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32", "cp1252"])
def test_a_text_is_none_of_them(text: str, encoding: str):
    assert describe_kind(text.encode(encoding)) is None
