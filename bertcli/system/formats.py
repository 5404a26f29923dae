"""JSON and protobuf: their bytes -> values, or one error."""

import json
from collections.abc import Iterator
from pathlib import Path, PureWindowsPath
from typing import Any

from bertcli.system.errors import UserError
from bertcli.system.files import has_file, plain_text


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises `UserError` where the file is damaged or holds no object."""
    content = read_json_value(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected a JSON object, found {type(content).__name__}")
    return content


def read_json_if_there(path: Path) -> dict[str, Any]:
    """The object in a JSON file, empty if there is no file. Raises as `read_json`."""
    return read_json(path) if has_file(path) else {}


def read_json_value(path: Path) -> Any:
    """The value in a JSON file. Raises `UserError` where the file is damaged."""
    try:
        return json.loads(plain_text(path))
    except (ValueError, RecursionError, OSError) as error:
        raise UserError(f"{path}: cannot be read as JSON: {error}. Copy or download it again.") from None


def is_inside(name: str) -> bool:
    """True if a path that a JSON file names stays inside the folder of that file.

    The path may be a link, as every file in the hub's cache is.
    """
    path = PureWindowsPath(name)  # reads both kinds of slashes, and drives
    return bool(path.name) and not path.anchor and ".." not in path.parts and "\0" not in name


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
