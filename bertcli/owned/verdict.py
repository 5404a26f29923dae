"""`verdict.json` of a run folder: what the run said at its end, for those who were not there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config

from bertcli.errors import UserError
from bertcli.files import disk_errors, plain_text
from bertcli.owned.mark import write_own

_Score = Annotated[float, Field(strict=True, ge=-1e100, le=1e100)]


@with_config(ConfigDict(extra="forbid", allow_inf_nan=False))
@dataclass(frozen=True)
class KeptVerdict:
    """
    Attributes:
        step: the last one of the run when it ended; a run that goes on later has other scores.
        lines: the verdict, then what else was said.
        baseline: metric -> the score of an answer that reads no text; empty for pretraining.
    """

    step: Annotated[int, Field(strict=True, ge=0, le=1 << 53)]
    lines: Sequence[str]
    baseline: Mapping[str, _Score] = field(default_factory=dict)


def write_verdict(path: Path, verdict: KeptVerdict) -> None:
    """Replace the verdict of a run. Raises `UserError`: a full disk, or a file that bertcli did not write."""
    with disk_errors(f"{path}: could not be written"):
        write_own(path, json.dumps(asdict(verdict), indent=1, ensure_ascii=False) + "\n")


def read_verdict(path: Path) -> KeptVerdict | None:
    """The verdict of a run; None: it has not ended yet. Raises `UserError` if the file is damaged."""
    if not path.exists():
        return None
    try:
        return TypeAdapter(KeptVerdict).validate_python(json.loads(plain_text(path)))
    except (ValueError, RecursionError) as error:
        reason = str(error)
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False)[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise UserError(
            f"{path}: damaged ({reason}); remove it, and finish the run again with --resume to have it back"
        ) from None
