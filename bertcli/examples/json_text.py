"""JSON text -> its value; errors name line and column."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from bertcli.examples.bad_rows import BadRow

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a character beyond U+FFFF, such as an emoji cut in two: no text encoding can hold it."""


def parse_json(text: str, path: Path, first_line: int = 1) -> Any:
    """The value of a JSON text that begins at `first_line` of a file. NaN, which pandas and Python write
    for a missing value, is None. Raises `BadRow` for invalid JSON."""
    try:
        value = json.loads(text, parse_constant=_constant)
        if "\\ud" in text or "\\uD" in text:  # only as an escape can half a character be in JSON
            value = json.loads(_LONE_SURROGATE.sub("\ufffd", json.dumps(value, ensure_ascii=False)))
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise BadRow(f"{path}, line {line}, column {error.colno}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise BadRow(f"{path}, line {first_line}: JSON that cannot be read: {error}") from None
    return value


def _constant(name: str) -> None:
    """The constants that Python reads beyond the standard: NaN, Infinity, -Infinity."""
    if name != "NaN":
        raise ValueError(f"{name} is not a JSON number")
