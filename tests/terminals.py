"""The real command line on a terminal of its own: what a person sees, and what is typed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import termios
from collections.abc import Sequence

from tests.small_runs import without_waiting
from tests.warm import Warm

CTRL_C = b"\x03"


def on_a_terminal(
    *arguments: object, columns: int = 100, typed: Sequence[tuple[str, bytes]] = ()
) -> tuple[str, int]:
    """What a command writes to a terminal, standard error with it, and its exit code.

    Args:
        typed: what is typed, each after a text that is shown later than what was typed before.
    """
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    process = Warm(*arguments, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    shown, seen, waiting = b"", 0, list(typed)
    with contextlib.suppress(OSError):  # how Linux says that the other side is closed
        while block := os.read(ours, 65536):
            shown += block
            if waiting and waiting[0][0].encode() in shown[seen:]:
                os.write(ours, waiting.pop(0)[1])
                seen = len(shown)
    os.close(ours)
    assert not waiting, shown.decode()
    return without_waiting(shown.decode().replace("\r\n", "\n")), process.wait()
