"""The first bytes of a text -> its encoding, if characters take two or four bytes each."""

from __future__ import annotations

import codecs

_START = 512
_FEWEST = 8
"""Characters; fewer prove nothing."""
_NUL = 0.4
"""Smallest share of upper bytes that are 0 in text that is mostly Latin; other encodings have none."""
_WIDE = {"utf-32-le": (1, 2, 3), "utf-32-be": (0, 1, 2), "utf-16-le": (1, 3), "utf-16-be": (0, 2)}
"""Encoding -> which bytes of each four are 0."""


def marked_encoding(start: bytes) -> str | None:
    """utf-16 or utf-32, if the text begins with its byte order mark."""
    if start.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    return "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def wide_encoding(start: bytes) -> str | None:
    """utf-16 or utf-32 (with the order of bytes if there is no byte order mark); None: another encoding."""
    if marked := marked_encoding(start):
        return marked
    head = start[: min(_START, len(start) // 4 * 4)]
    if len(head) < 2 * _FEWEST:
        return None
    zeros = [head[place::4].count(0) for place in range(4)]
    many = [4 * count >= _NUL * len(head) for count in zeros]
    none = [count == 0 for count in zeros]
    for name, wide in _WIDE.items():
        if all(many[place] if place in wide else none[place] for place in range(4)):
            return name
    return None
