"""A TensorFlow checkpoint -> its tensors, without TensorFlow; their CRC-32C, fast enough for a full BERT."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertcli.system.errors import UserError
from bertcli.system.files import plain_bytes, refuse_special
from bertcli.system.formats import read_fields, read_varint

_POLYNOMIAL = np.uint32(0x82F63B78)
"""Castagnoli's polynomial, its bits in reverse (RFC 3720, appendix B.4)."""
_MOST_LANES = 1024
_SHORTEST_LANE = 64


def crc32c(data: bytes | np.ndarray) -> int:
    """CRC-32C of four bytes or more.

    A CRC is linear over GF(2) except for its initial value, and leading zeros do not change it. The bytes are
    therefore cut into equal lanes, whose CRCs are computed in parallel and then joined in pairs: crc(AB) =
    crc(A followed by one zero per byte of B) xor crc(B).
    """
    message = np.frombuffer(data, dtype=np.uint8)
    lanes = 1
    while lanes < _MOST_LANES and len(message) >= 2 * lanes * _SHORTEST_LANE:
        lanes *= 2
    padding = -len(message) % (2 * lanes)
    padded = np.concatenate([np.zeros(padding, np.uint8), message])
    padded[padding : padding + 4] ^= 0xFF  # the initial value of all ones
    words = padded.view("<u2").reshape(lanes, -1)

    crcs = _advance(np.zeros(lanes, np.uint32), words)
    # How a lane of zeros changes each single bit, and so, by linearity, any CRC.
    bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
    shift = _advance(bits, np.zeros((32, words.shape[1]), np.uint16))
    while len(crcs) > 1:
        crcs = _apply(shift, crcs[0::2]) ^ crcs[1::2]
        shift = _apply(shift, shift)
    return int(crcs[0]) ^ 0xFFFFFFFF


def unmask(masked: int) -> int:
    """The CRC from its stored form: TensorFlow rotates it and adds a constant, as LevelDB does."""
    rotated = (masked - 0xA282EAD8) & 0xFFFFFFFF
    return (rotated >> 17 | rotated << 15) & 0xFFFFFFFF


def _remainders() -> np.ndarray:
    """The CRC of each 16-bit word."""
    crcs = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(16):
        crcs = crcs >> 1 ^ (crcs & 1) * _POLYNOMIAL
    return crcs


_REMAINDERS = _remainders()


def _advance(crcs: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The CRC of each lane [lanes] after its words [lanes, words] of 16 bits."""
    for column in words.T:
        crcs = _REMAINDERS.take(crcs.astype(np.uint16) ^ column) ^ crcs >> 16
    return crcs


def _apply(shift: np.ndarray, crcs: np.ndarray) -> np.ndarray:
    """The linear map that sends bit i to `shift[i]`, applied to each of `crcs`."""
    moved = np.zeros_like(crcs)
    for bit in range(32):
        moved ^= (crcs >> bit & 1) * shift[bit]
    return moved


_FOOTER_SIZE = 48
_MAGIC = 0xDB4775248B80FB57
_TRAILER_SIZE = 5
_COMPRESSIONS = {1: "snappy", 2: "zstd"}


def read_table(data: bytes) -> dict[bytes, bytes]:
    """All entries of a table file. Raises `ValueError` with the reason if it is damaged."""
    footer = data[-_FOOTER_SIZE:]
    if len(footer) < _FOOTER_SIZE or int.from_bytes(footer[-8:], "little") != _MAGIC:
        raise ValueError("it does not end with the footer of such a table")
    _, after = _read_handle(footer, 0)  # the handle of the meta-index, which is empty here
    index, _ = _read_handle(footer, after)
    entries: dict[bytes, bytes] = {}
    for _, handle in _read_entries(_read_block(data, *index)):
        block, _ = _read_handle(handle, 0)
        entries |= dict(_read_entries(_read_block(data, *block)))
    return entries


def _read_handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """The (offset, size) of a block, and the offset of the handle's end."""
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


_DT_FLOAT = 1
"""The number of float32 in tensorflow/core/framework/types.proto."""


@dataclass(frozen=True)
class TensorEntry:
    """The place of a tensor's values: `size` bytes at `offset` of data file number `shard`."""

    dtype: int
    shape: tuple[int, ...]
    shard: int
    offset: int
    size: int
    masked_crc: int
    sliced: bool
    """True for a partitioned variable, which is stored in slices."""


class TfCheckpoint:
    """An open checkpoint; `read` reads one tensor.

    Attributes:
        entries: name of a tensor -> its entry.

    Raises `UserError` if the index is missing, damaged, compressed or not little-endian.
    """

    def __init__(self, prefix: Path) -> None:
        self._prefix = prefix
        self.index = prefix.with_name(f"{prefix.name}.index")
        try:
            table = read_table(plain_bytes(self.index))
            self._num_shards, little_endian = _parse_header(table.pop(b"", b""))
            self.entries = {name.decode(): _parse_entry(value) for name, value in sorted(table.items())}
        except (ValueError, TypeError) as error:
            raise UserError(
                f"{self.index}: cannot be read as the index of a TensorFlow checkpoint: {error}. "
                f"Copy or download it again."
            ) from None
        except OSError as error:
            raise UserError(f"{self.index}: cannot be read: {error.strerror}") from None
        if not little_endian:
            raise UserError(f"{self.index}: was written on a big-endian machine; only little-endian is read")

    def read(self, name: str) -> np.ndarray:
        """The float32 values of a tensor; size and checksum are compared with the index.

        Raises `UserError` if the data file is missing, too short or damaged, or has another type.
        """
        entry = self.entries[name]
        if entry.dtype != _DT_FLOAT or entry.sliced:
            what = "is stored in slices" if entry.sliced else f"has TensorFlow's data type {entry.dtype}"
            raise UserError(f"{self.index}: {name} {what}; expected a float32 tensor in one piece")
        if entry.size != 4 * math.prod(entry.shape):
            raise UserError(f"{self.index}: {name} of shape {entry.shape} cannot have {entry.size} bytes")
        path = self._prefix.with_name(f"{self._prefix.name}.data-{entry.shard:05d}-of-{self._num_shards:05d}")
        try:
            refuse_special(path)
            if path.stat().st_size < entry.offset + entry.size:
                raise UserError(f"{path}: ends before {name} does. Copy or download it again.")
            values = np.fromfile(path, dtype="<f4", count=entry.size // 4, offset=entry.offset)
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}. Copy it beside the index.") from None
        if crc32c(values) != unmask(entry.masked_crc):
            raise UserError(f"{path}: the checksum of {name} is wrong. Copy or download it again.")
        return values.reshape(entry.shape)


def _parse_header(message: bytes) -> tuple[int, bool]:
    """`BundleHeaderProto` -> number of data files, and whether they are little-endian."""
    fields = dict(read_fields(message))
    num_shards = fields.get(1, 0)
    if not isinstance(num_shards, int) or num_shards < 1:
        raise ValueError("it has no header")
    return num_shards, fields.get(2, 0) == 0


def _parse_entry(message: bytes) -> TensorEntry:
    """`BundleEntryProto` -> the entry; a field that is absent means zero."""
    fields = dict(read_fields(message))
    numbers = {key: value for key, value in fields.items() if isinstance(value, int)}
    shape = fields.get(2, b"")
    return TensorEntry(
        dtype=numbers.get(1, 0),
        shape=_parse_shape(shape if isinstance(shape, bytes) else b""),
        shard=numbers.get(3, 0),
        offset=numbers.get(4, 0),
        size=numbers.get(5, 0),
        masked_crc=numbers.get(6, 0),
        sliced=7 in fields,
    )


def _parse_shape(message: bytes) -> tuple[int, ...]:
    """`TensorShapeProto` -> the shape: a message per dimension, whose field 1 is the size."""
    dimensions = [value for number, value in read_fields(message) if number == 2 and isinstance(value, bytes)]
    sizes = [dict(read_fields(dimension)).get(1, 0) for dimension in dimensions]
    return tuple(size for size in sizes if isinstance(size, int))
