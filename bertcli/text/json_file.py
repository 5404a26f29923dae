"""A JSON file -> what it holds, or one error."""

from __future__ import annotations

import json
from pathlib import Path, PureWindowsPath
from typing import Any

from bertcli.errors import UserError


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises `UserError` where the file is damaged or holds something else."""
    content = read_json_value(path)
    if not isinstance(content, dict):
        raise UserError(f"{path}: expected a JSON object, found {type(content).__name__}")
    return content


def read_json_value(path: Path) -> Any:
    """What a JSON file holds. Raises `UserError` where it is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError, OSError) as error:
        raise UserError(f"{path}: cannot be read as JSON: {error}. Copy or download it again.") from None


def is_inside(name: str) -> bool:
    """Whether a file's name that stands in a JSON file leads no higher than the folder it is taken from.

    It may be a link, as every file is in the hub's cache.
    """
    path = PureWindowsPath(name)  # knows both kinds of slashes, and drives
    return bool(path.name) and not path.anchor and ".." not in path.parts and "\0" not in name
