"""`data.json` of a run folder: identifies the training data; written at the start, compared on a resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bertcli.errors import UserError
from bertcli.files import disk_errors
from bertcli.owned.mark import write_own


def write_run_data(path: Path, data: dict[str, Any]) -> None:
    """Write the identity of the training data, if it is not there yet. Raises `UserError`: a full disk."""
    if path.exists():
        return
    with disk_errors(f"{path}: could not be written"):
        write_own(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def read_run_data(path: Path, types: dict[str, type]) -> dict[str, Any] | None:
    """The content of the file, whose keys have these `types`; None: the run was killed before it wrote it.

    Raises:
        UserError: the file is damaged.
    """
    if not path.exists():
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        wrong = [key for key, type_ in types.items() if not isinstance(data[key], type_)]
        if wrong:
            raise ValueError(f"{wrong[0]} is not a {types[wrong[0]].__name__}")
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path}: damaged ({error!r}), so the data cannot be compared with those of the run's start. "
            "If they are unchanged, remove this file and resume; else start a new run"
        ) from None
    return data
