"""The two parts of protobuf's wire format that a TensorFlow checkpoint and a SentencePiece model need."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
"""The wire types (protobuf.dev, "Encoding")."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at offset `at`, seven bits a byte, the lowest first -> (number, offset of its end).

    Raises `ValueError` if the data ends within the number, or the number has more than ten bytes.
    """
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ValueError("a number is cut off")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
    raise ValueError("a number of more than ten bytes")


def read_fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field of a message, in order; a field may be repeated or absent.

    The value is an int, or bytes for a field with a length (a string, a nested message).
    Raises `ValueError` if this is not a message.
    """
    at = 0
    while at < len(message):
        key, at = read_varint(message, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == VARINT:
            value, at = read_varint(message, at)
            yield number, value
            continue
        if wire_type == BYTES:
            size, at = read_varint(message, at)
        elif wire_type in (FIXED32, FIXED64):
            size = 4 if wire_type == FIXED32 else 8
        else:
            raise ValueError(f"a field of the unknown wire type {wire_type}")
        raw = message[at : at + size]
        if len(raw) < size:
            raise ValueError("a field is cut off")
        at += size
        yield number, raw if wire_type == BYTES else int.from_bytes(raw, "little")
