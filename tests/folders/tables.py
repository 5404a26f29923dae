"""A writer of sorted tables, for the cases that the stored checkpoint does not show."""

from __future__ import annotations

from itertools import takewhile

from bertcli.folders.tf_checkpoint import crc32c


def varint(number: int) -> bytes:
    data = bytearray()
    while number >= 0x80:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])


def block(entries: dict[bytes, bytes], compression: int = 0, every: int = 3) -> bytes:
    """A block with its trailer; each `every`-th key stands in full."""
    body, restarts, last = bytearray(), [], b""
    for i, (key, value) in enumerate(sorted(entries.items())):
        same = takewhile(lambda pair: pair[0] == pair[1], zip(last, key, strict=False))
        shared = 0 if i % every == 0 else len(list(same))
        if i % every == 0:
            restarts.append(len(body))
        body += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    restarts = restarts or [0]
    for number in (*restarts, len(restarts)):
        body += number.to_bytes(4, "little")
    body.append(compression)
    crc = crc32c(bytes(body))
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return bytes(body) + masked.to_bytes(4, "little")


def table(entries: dict[bytes, bytes], per_block: int = 4, compression: int = 0) -> bytes:
    """A whole table of blocks with `per_block` entries each."""
    data, index = bytearray(), {}
    keys = sorted(entries)
    for start in range(0, len(keys), per_block):
        some = keys[start : start + per_block]
        content = block({key: entries[key] for key in some}, compression)
        index[some[-1]] = varint(len(data)) + varint(len(content) - 5)
        data += content
    handles = b""
    for content in (block({}), block(index, every=1)):
        handles += varint(len(data)) + varint(len(content) - 5)
        data += content
    return bytes(data) + handles.ljust(40, b"\0") + 0xDB4775248B80FB57.to_bytes(8, "little")
