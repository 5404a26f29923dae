"""A TensorFlow checkpoint (`NAME.index`, `NAME.data-00000-of-00001`) -> its tensors, without TensorFlow.

The index is a sorted table: tensor name -> protobuf `BundleEntryProto`, empty name -> `BundleHeaderProto`.
The data files hold the values, raw and little-endian
(tensorflow/core/protobuf/tensor_bundle.proto).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bertcli.errors import UserError
from bertcli.files import plain_bytes, refuse_special
from bertcli.hf.crc32c import crc32c, unmask
from bertcli.hf.sstable import read_table
from bertcli.text.protobuf import read_fields

_DT_FLOAT = 1
"""In tensorflow/core/framework/types.proto."""


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
    """Stored in slices, as a partitioned variable."""


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
    """`BundleEntryProto`; a field that is absent means zero."""
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
    """`TensorShapeProto`: a message per dimension, whose field 1 is the size."""
    dimensions = [value for number, value in read_fields(message) if number == 2 and isinstance(value, bytes)]
    sizes = [dict(read_fields(dimension)).get(1, 0) for dimension in dimensions]
    return tuple(size for size in sizes if isinstance(size, int))
