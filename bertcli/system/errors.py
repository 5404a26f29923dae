"""The errors that a user sees: one message, no traceback, exit code 2. Imports nothing of ours."""

import errno

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The system's error numbers for a full disk, a used-up quota, and a file of the largest allowed size."""


class UserError(ValueError):
    """Input that cannot be used: says what is wrong, where, what was expected and what to do next.

    The command line prints the message alone and exits with code 2 (`bertcli.cli.main`).
    """
