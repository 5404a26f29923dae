"""A sorted table of keys and values in LevelDB's file format -> its entries; the index of a TF checkpoint.

The footer (48 bytes) points to the index block, whose entries point to the data blocks. A block is a
sequence of entries, then the offsets of the keys that are stored in full. Any other key is stored without the
prefix that it shares with the key before. After the block come one byte for the compression and the CRC
(LevelDB, doc/table_format.md).
"""

from __future__ import annotations

from collections.abc import Iterator

from bertcli.hf.crc32c import crc32c, unmask
from bertcli.text.protobuf import read_varint

_FOOTER_SIZE = 48
_MAGIC = 0xDB4775248B80FB57
_TRAILER_SIZE = 5
_COMPRESSIONS = {1: "snappy", 2: "zstd"}


def read_table(data: bytes) -> dict[bytes, bytes]:
    """All entries of a table file. Raises `ValueError` with the reason if it is damaged."""
    footer = data[-_FOOTER_SIZE:]
    if len(footer) < _FOOTER_SIZE or int.from_bytes(footer[-8:], "little") != _MAGIC:
        raise ValueError("it does not end with the footer of such a table")
    _, after = _read_handle(footer, 0)  # of the meta-index, which is empty here
    index, _ = _read_handle(footer, after)
    entries: dict[bytes, bytes] = {}
    for _, handle in _read_entries(_read_block(data, *index)):
        block, _ = _read_handle(handle, 0)
        entries |= dict(_read_entries(_read_block(data, *block)))
    return entries


def _read_handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """(offset, size) of a block, and the offset of the handle's end."""
    offset, at = read_varint(data, at)
    size, at = read_varint(data, at)
    return (offset, size), at


def _read_block(data: bytes, offset: int, size: int) -> bytes:
    checked = data[offset : offset + size + 1]
    trailer = data[offset + size : offset + size + _TRAILER_SIZE]
    if size < 4 or len(trailer) < _TRAILER_SIZE:
        raise ValueError("a block is cut off")
    if crc32c(checked) != unmask(int.from_bytes(trailer[1:], "little")):
        raise ValueError(f"the checksum of the block at byte {offset} is wrong")
    if compression := trailer[0]:
        raise ValueError(f"it is compressed ({_COMPRESSIONS.get(compression, compression)})")
    return checked[:size]


def _read_entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    num_full_keys = int.from_bytes(block[-4:], "little")
    end = len(block) - 4 * (num_full_keys + 1)
    at, key = 0, b""
    while at < end:
        shared, at = read_varint(block, at)
        own, at = read_varint(block, at)
        size, at = read_varint(block, at)
        key = key[:shared] + block[at : at + own]
        at += own + size
        yield key, block[at - size : at]
