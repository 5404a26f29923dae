"""How the bytes of a text file become characters: what a config says of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, NamedTuple

BadBytes = Literal["refuse", "replace", "skip-line"]


class Decoding(NamedTuple):
    """An encoding, as Python names it, and what happens to bytes that are not in it.

    `section`: the config's section that has the keys `encoding` and `bad_bytes`, for messages.
    """

    encoding: str = "utf-8"
    bad_bytes: BadBytes = "refuse"
    section: str = "corpus"

    @property
    def key(self) -> str:
        """The config's key of the encoding."""
        return f"{self.section}.encoding"


def fits(path: Path, name: str) -> bool:
    """Whether `name`, a path or a pattern of paths, means this file."""
    given, own = Path(os.path.expanduser(name)), str(path.expanduser().resolve())
    return own == str(given.resolve()) or fnmatchcase(own, str(given.parent.resolve() / given.name))


def own_encoding(path: Path, encodings: Mapping[str, str]) -> str | None:
    """The encoding of the first name that means the file; None: no name does."""
    return next((encoding for name, encoding in encodings.items() if fits(path, name)), None)
