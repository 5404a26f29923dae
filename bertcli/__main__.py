"""The console script, and `python -m bertcli`. It is so small that Ctrl-C works before the rest is
imported."""

import gc

from bertcli.system.signals import hear_ctrl_c


def main() -> None:
    """Import the command line and run it."""
    hear_ctrl_c()
    from bertcli.cli.main import main as run

    try:
        run()
    finally:
        gc.freeze()  # Python's last collection would visit every object of torch, for half a second


if __name__ == "__main__":
    main()
