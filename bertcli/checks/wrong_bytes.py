"""An encoding -> one that decodes the same, but notes undecodable bytes and continues.

The readers of `bertcli.text` stop at the first wrong byte, as a run must. With the name of such an encoding
they continue, so that one pass finds all wrong bytes.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bertcli.checks.findings import Finding, Places
from bertcli.text.decoders import new_decoder
from bertcli.text.streams import deciding_mark, read_lines

SUBSTITUTE = "\ufdd0"
"""Replaces wrong bytes: a code point that Unicode reserves for use inside a program."""

Note = Callable[[int, bytes, str], None]
"""Called with the offset of wrong bytes in the (decompressed) file, the bytes, and the reason."""

_NAME = "bertcli_noting"


@dataclass
class WrongBytes:
    """The wrong bytes of one file; `note` is a `Note`."""

    key: str
    """The config's key of the encoding, for messages."""
    encoding: str
    places: Places = field(default_factory=Places)
    last: int = -1
    """The offset of the last one."""

    def note(self, offset: int, data: bytes, reason: str) -> None:
        """Count what could not be decoded at this offset of the file, once."""
        if offset > self.last:  # some readers read the start of a file twice
            self.last = offset
            self.places.add(1, [f"byte {offset} (0x{data[:4].hex()}): {reason}"])

    def findings(self, path: Path, share: float) -> list[Finding]:
        """One, or none. `share`: the file's part of all text."""
        if not self.places.count:
            return []
        encoding = deciding_mark(path, self.encoding) or self.encoding
        number = "1 place" if self.places.count == 1 else f"{self.places.count:,} places"
        finding = Finding(
            fails=True,
            problem=f"{path}: bytes that are not {encoding}, in {number}",
            mend=f"if the text is in another encoding, name it in {self.key}, for example cp1252; if it is "
            "no text, leave the file out",
            places=tuple(self.places.first),
            share=share,
        )
        return [finding]


@contextmanager
def noting_encoding(encoding: str, key: str, note: Note) -> Iterator[str]:
    """The name of an encoding that calls `note`; valid inside the context, one at a time in a process.

    `key`: the config's key, for messages. Raises `UserError` for an unknown encoding.
    """
    list(read_lines(Path(os.devnull), encoding, key=key))  # raises `UserError` for an unknown one

    class Decoder(codecs.IncrementalDecoder):
        def __init__(self, errors: str = "strict"):
            super().__init__(errors)
            self._inner = new_decoder(encoding, _NAME)
            self._offset = 0

        def decode(self, input: bytes, final: bool = False) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
            nonlocal start
            start = self._offset - len(self._inner.getstate()[0])
            self._offset += len(input)
            return self._inner.decode(input, final)

        def getstate(self) -> tuple[bytes, int]:
            return self._inner.getstate()

    start = 0  # offset of the bytes being decoded, with those held back from the previous block

    def handle(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeDecodeError)
        note(start + error.start, error.object[error.start : error.end], error.reason)
        return SUBSTITUTE, error.end

    def search(name: str) -> codecs.CodecInfo | None:
        if name != _NAME:
            return None
        found = codecs.lookup(encoding)
        return codecs.CodecInfo(found.encode, found.decode, incrementaldecoder=Decoder, name=found.name)

    codecs.register(search)
    codecs.register_error(_NAME, handle)
    try:
        yield _NAME
    finally:
        codecs.unregister(search)
