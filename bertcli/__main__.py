"""The console script, and `python -m bertcli`. It is so small that Ctrl-C works before the rest is
imported."""

import os
import signal
import sys
from types import FrameType

from bertcli.system.terminal import line_on_ctrl_c, say_in_handler


def main() -> None:
    """Import the command line and run it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # otherwise the caller ignores Ctrl-C
        signal.signal(signal.SIGINT, _on_ctrl_c)
    from bertcli.cli.main import main as run

    run()


def _on_ctrl_c(number: int, frame: FrameType | None) -> None:
    """Raise `KeyboardInterrupt`; during an import, end the process at once, because the import would turn
    that into errors of its own."""
    inner = frame
    while inner is not None:
        if inner.f_code.co_filename.startswith("<frozen importlib"):
            if sys.stderr is not None:
                say_in_handler(line_on_ctrl_c())
            os._exit(130)
        inner = inner.f_back
    signal.default_int_handler(number, frame)


if __name__ == "__main__":
    main()
