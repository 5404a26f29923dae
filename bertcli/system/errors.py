"""The errors that a user sees: one message, no traceback, exit code 2. Imports nothing of ours."""

import errno
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
