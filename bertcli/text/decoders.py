"""The name of an encoding -> a decoder; UTF-8 gives way to the byte order mark of UTF-16 or UTF-32."""

from __future__ import annotations

import codecs

from bertcli.text.wide_encodings import marked_encoding

_UTF_8 = ("utf-8", "utf-8-sig")


def reads_marks(encoding: str) -> bool:
    """Whether a byte order mark decides over this encoding: it is UTF-8, in which no text begins so."""
    return codecs.lookup(encoding).name in _UTF_8


def mark_note(name: object, encoding: str) -> str:
    """The line for the user about a text whose byte order mark decided for `encoding`."""
    return f"{name}: is read as {encoding.upper()}, as its byte order mark says, not as UTF-8"


def new_decoder(encoding: str, errors: str = "strict") -> codecs.IncrementalDecoder:
    """A decoder of bytes, a block at a time. Raises `LookupError` for an unknown encoding."""
    make = codecs.getincrementaldecoder(encoding)
    if make in [codecs.getincrementaldecoder(name) for name in _UTF_8]:
        return MarkedDecoder(errors)
    return make(errors)


class MarkedDecoder(codecs.IncrementalDecoder):
    """Decodes UTF-8, or UTF-16 or UTF-32 if the first bytes are its byte order mark.

    The first block must hold all of the mark. A mark of UTF-8 is decoded to U+FEFF, those of the others to
    nothing.
    """

    def __init__(self, errors: str = "strict"):
        super().__init__(errors)
        self._inner: codecs.IncrementalDecoder | None = None

    def decode(self, input: bytes, final: bool = False) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        if self._inner is None:
            self._inner = codecs.getincrementaldecoder(marked_encoding(input) or "utf-8")(self.errors)
        return self._inner.decode(input, final)

    def getstate(self) -> tuple[bytes, int]:
        return (b"", 0) if self._inner is None else self._inner.getstate()
