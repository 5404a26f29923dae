"""The first bytes of a file -> its kind, if it is not text: an archive, a document, a picture."""

from __future__ import annotations

import re
from typing import NamedTuple

START_BYTES = 512
"""Enough first bytes for every kind: the header of a tar archive is the longest."""

_UNPACK = "unpack it first, and name the files in it"
_DECOMPRESS = "decompress it first"
_NAME_IT = "decompress it first, or give it a name that ends in "
_EXPORT = "save or export it as plain text first"
_LEAVE_OUT = "leave it out"
_BINARY = rb"(?s:.{0,28}?)[\x00-\x08\x0e-\x1a]"
"""A byte that no text contains, near the start: a text may also begin with the letters of a magic number."""


class Kind(NamedTuple):
    """A kind of file that is not plain text."""

    name: str
    """As in "FILE is a PDF"."""
    mend: str
    """What the user can do."""


_MAGIC = [
    (re.compile(pattern), Kind(name, mend))
    for pattern, name, mend in (
        (rb"(?s)PK\x03\x04.{26}mimetypeapplication/epub", "an EPUB book", _EXPORT),
        (
            rb"(?s)PK\x03\x04.{26}(\[Content_Types\]\.xml|mimetypeapplication/vnd\.oasis)",
            "an office document",
            _EXPORT,
        ),
        (rb"PK(\x03\x04|\x05\x06|\x07\x08)", "a ZIP archive", _UNPACK),
        (rb"\x1f\x8b[\x08]", "compressed with gzip", _NAME_IT + ".gz"),
        (rb"\x28\xb5\x2f\xfd", "compressed with Zstandard", _NAME_IT + ".zst"),
        (rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", "compressed with bzip2", _DECOMPRESS),
        (rb"\xfd7zXZ\x00", "compressed with xz", _DECOMPRESS),
        (rb"\x5d\x00\x00[^\x00]", "compressed with LZMA", _DECOMPRESS),
        (rb"LZIP\x01", "compressed with lzip", _DECOMPRESS),
        (rb"\x04\x22\x4d\x18", "compressed with LZ4", _DECOMPRESS),
        (rb"\x1f[\x9d\xa0]", "compressed with compress (.Z)", _DECOMPRESS),
        (rb"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
        (rb"Rar!\x1a\x07", "a RAR archive", _UNPACK),
        (rb"MSCF\x00\x00\x00\x00", "a cabinet archive", _UNPACK),
        (rb"!<arch>\n", "an ar archive", _UNPACK),
        (rb"(070701|070702|070707)[0-9A-Fa-f]{60}", "a cpio archive", _UNPACK),
        (rb"%PDF-[0-9]", "a PDF", "extract its text first, for example with pdftotext"),
        (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an office document", _EXPORT),
        (rb"\{\\rtf[0-9]", "an RTF document", _EXPORT),
        (rb"%!PS-Adobe", "a PostScript file", "extract its text first, for example with ps2ascii"),
        (rb"AT&TFORM", "a DjVu document", "extract its text first, for example with djvutxt"),
        (rb"PAR1" + _BINARY, "a Parquet file", "in a corpus, set corpus.format: parquet"),
        (rb"ARROW1\x00\x00", "an Arrow file", "write its text to Parquet or JSON lines first"),
        (rb"SQLite format 3\x00", "an SQLite database", "write its text to JSON lines first"),
        (rb"\x89HDF\r\n\x1a\n", "an HDF5 file", "write its text to JSON lines first"),
        (rb"\x93NUMPY", "a NumPy array", _LEAVE_OUT),
        (rb"\x80[\x02-\x05](\x95|\}|c|\]|\()", "a Python pickle", _LEAVE_OUT),
        (rb"\x89PNG\r\n\x1a\n", "a PNG picture", _LEAVE_OUT),
        (rb"\xff\xd8\xff", "a JPEG picture", _LEAVE_OUT),
        (rb"GIF8[79]a" + _BINARY, "a GIF picture", _LEAVE_OUT),
        (rb"(II\*\x00|MM\x00\*)", "a TIFF picture", _LEAVE_OUT),
        (rb"(?s)RIFF.{4}WEBP", "a WebP picture", _LEAVE_OUT),
        (rb"(?s)(RIFF.{4}(WAVE|AVI )|\x00\x00.{2}ftyp|ID3[\x02-\x04]|OggS\x00|fLaC\x00)",
         "a recording", _LEAVE_OUT),
        (rb"\x7fELF", "a program", _LEAVE_OUT),
        (rb"MZ" + _BINARY, "a program", _LEAVE_OUT),
    )
]  # fmt: skip
_TAR = Kind("a tar archive", _UNPACK + ": tar -xf")


def describe_kind(start: bytes) -> Kind | None:
    """The kind of a file with these first bytes, if it is known not to be text; else None.

    Args:
        start: at least `START_BYTES` bytes, or the complete file; of a .gz or .zst, decompressed.
    """
    for pattern, kind in _MAGIC:
        if pattern.match(start):
            return kind
    return _TAR if _is_tar_header(start[:512]) else None


def _is_tar_header(header: bytes) -> bool:
    """Whether the first header of a tar archive, old or new, holds the sum of its bytes, in octal."""
    field = header[148:156].strip(b"\0 ")
    if len(header) < 512 or not re.fullmatch(rb"[0-7]{1,7}", field):
        return False
    return sum(header) - sum(header[148:156]) + 8 * ord(" ") == int(field, 8)
