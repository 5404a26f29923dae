"""The errors that a user sees: one message, no traceback, exit code 2; and what is wrong in data. Imports
nothing of ours."""

import errno
from dataclasses import dataclass, field
from typing import Any

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The system's error numbers for a full disk, a used-up quota, and a file of the largest allowed size."""


def first_problem(error: Any, of_all: str = "") -> str:
    """The place and the text of the first problem in pydantic's `ValidationError`.

    `of_all`: the name of the place if it is the whole value.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or of_all}: {first['msg']}"


class UserError(ValueError):
    """Input that cannot be used: says what is wrong, where, what was expected and what to do next.

    The command line prints the message alone and exits with code 2 (`bertcli.cli.main`).
    """


@dataclass(frozen=True)
class Finding:
    """One fault of the data, at all of its places.

    Attributes:
        fails: True if the run would end in an error; False if it would run, and give a worse model.
        problem: what is wrong, and how often.
        mend: what to do; empty if `problem` says it.
        places: the first few places: file, place in it, text there.
        share: the share of the text or of the rows with the fault; findings of one kind are sorted by it.
    """

    fails: bool = field(default=False, kw_only=True)  # first in `check-data --json`
    problem: str
    mend: str = ""
    places: tuple[str, ...] = ()
    share: float = 0.0
