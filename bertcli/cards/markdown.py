"""Parts of a published card: front matter as YAML, a user's words as plain text, no local paths."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertcli.config.yaml_text import yaml_text

_MARKUP = re.compile(r"[\\`*{}\[\]<>|~&$!#]|(?<![^\W_])_|_(?![^\W_])")
"""An underscore within a word is not markup."""
_HUB_CACHE = "models--"


def front_matter(values: Mapping[str, Any]) -> str:
    """The YAML block of `values` between `---` lines, which model hubs read."""
    return f"---\n{yaml_text(dict(values), flow=None)}---"


def plain(text: str) -> str:
    """A user's words on one line, escaped so that Markdown shows them unchanged."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return _MARKUP.sub(r"\\\g<0>", " ".join(printable.split()))


def public_name(path: str) -> str:
    """The name of a file or folder in a card: a relative path as given, else the last part alone.

    A model in the cache of the hub has its id, and the `model` of a run also the name of the run.
    """
    given = Path(path)
    cached = [part for part in given.parts if part.startswith(_HUB_CACHE)]
    if cached:
        return cached[0].removeprefix(_HUB_CACHE).replace("--", "/")
    if not given.is_absolute() and not path.startswith("~") and ".." not in given.parts:
        return path
    return f"{given.parent.name}/{given.name}" if given.name == "model" else given.name
