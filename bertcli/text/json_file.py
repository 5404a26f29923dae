"""A JSON file -> its content, or one error."""

from __future__ import annotations

import json
from pathlib import Path, PureWindowsPath
from typing import Any

from bertcli.errors import UserError
from bertcli.files import plain_text


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises `UserError` where the file is damaged or holds no object."""
    content = read_json_value(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected a JSON object, found {type(content).__name__}")
    return content


def read_json_value(path: Path) -> Any:
    """The value in a JSON file. Raises `UserError` where the file is damaged."""
    try:
        return json.loads(plain_text(path))
    except (ValueError, RecursionError, OSError) as error:
        raise UserError(f"{path}: cannot be read as JSON: {error}. Copy or download it again.") from None


def is_inside(name: str) -> bool:
    """Whether a path that a JSON file names stays inside the folder of that file.

    It may be a link, as every file in the hub's cache is.
    """
    path = PureWindowsPath(name)  # reads both kinds of slashes, and drives
    return bool(path.name) and not path.anchor and ".." not in path.parts and "\0" not in name
