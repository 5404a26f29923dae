"""The errors that a user sees: one message, no traceback, exit code 2. Imports nothing of ours."""

import errno

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The system's numbers for it: the disk, a share of it, or a file as large as it may be."""


class UserError(ValueError):
    """Input that cannot be used: says what is wrong, where, what was expected and what to do next.

    The command line prints the message alone and exits with code 2 (`bertcli.cli.main`).
    """
