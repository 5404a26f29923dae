"""An encoding -> one that reads the same, but notes bytes that are none of it and goes on.

The readers of `bertcli.text` stop at the first wrong byte, as a run must. Under the name of such an encoding
they read on, so that one pass finds all of them.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bertcli.checks.findings import Finding, Places
from bertcli.text.streams import read_lines

SUBSTITUTE = "\ufdd0"
"""Read for a wrong byte: a code point that Unicode keeps free for use inside a program."""

Note = Callable[[int, bytes, str], None]
"""Called with the offset of wrong bytes in their (decompressed) file, the bytes, and the reason."""

_NAME = "bertcli_noting"


@dataclass
class WrongBytes:
    """The wrong bytes of one file; `note` is a `Note`."""

    key: str
    """What messages call the config's key of the encoding."""
    encoding: str
    places: Places = field(default_factory=Places)
    last: int = -1
    """The offset of the last one."""

    def note(self, offset: int, data: bytes, reason: str) -> None:
        """Count what could not be decoded at this offset of the file, once."""
        if offset > self.last:  # some readers look into a file before they read it
            self.last = offset
            self.places.add(1, [f"byte {offset} (0x{data[:4].hex()}): {reason}"])

    def findings(self, path: Path, share: float) -> list[Finding]:
        """One, or none; `share`: of all that is read."""
        if not self.places.count:
            return []
        number = "1 place" if self.places.count == 1 else f"{self.places.count:,} places"
        finding = Finding(
            fails=True,
            problem=f"{path}: bytes that are not {self.encoding}, in {number}",
            mend=f"if the text is in another encoding, name it in {self.key}, for example cp1252; if it is "
            "no text, leave the file out",
            places=tuple(self.places.first),
            share=share,
        )
        return [finding]


@contextmanager
def noting_encoding(encoding: str, key: str, note: Note) -> Iterator[str]:
    """Within, the returned name is an encoding for reading. One at a time in a process.

    `key` is what messages call the config's key. Raises `UserError` for an unknown encoding.
    """
    list(read_lines(Path(os.devnull), encoding, key=key))  # raises for an unknown one, with the usual message

    class Decoder(codecs.IncrementalDecoder):
        def __init__(self, errors: str = "strict"):
            super().__init__(errors)
            self._inner = codecs.getincrementaldecoder(encoding)(_NAME)
            self._offset = 0

        def decode(self, input: bytes, final: bool = False) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
            nonlocal start
            start = self._offset - len(self._inner.getstate()[0])
            self._offset += len(input)
            return self._inner.decode(input, final)

        def getstate(self) -> tuple[bytes, int]:
            return self._inner.getstate()

    start = 0  # of the bytes that are being decoded, those held back from the last block among them

    def handle(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeDecodeError)
        note(start + error.start, error.object[error.start : error.end], error.reason)
        return SUBSTITUTE, error.end

    def search(name: str) -> codecs.CodecInfo | None:
        if name != _NAME:
            return None
        found = codecs.lookup(encoding)
        return codecs.CodecInfo(found.encode, found.decode, incrementaldecoder=Decoder, name=_NAME)

    codecs.register(search)
    codecs.register_error(_NAME, handle)
    try:
        yield _NAME
    finally:
        codecs.unregister(search)
