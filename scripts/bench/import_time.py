"""How long `import bertcli` takes, without Python's own start; the median of new processes.

    python scripts/bench/import_time.py

Exit code 1 if it takes more than 0.1 s.
"""

from __future__ import annotations

import statistics
import subprocess
import sys

ROUNDS, MOST_SECONDS = 21, 0.1
PROGRAM = "import time; t = time.perf_counter(); import bertcli; print(time.perf_counter() - t)"


def main() -> None:
    """Print the seconds."""
    command = [sys.executable, "-c", PROGRAM]
    seconds = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(ROUNDS)]
    median = statistics.median(seconds)
    print(f"import bertcli: {median:.3f} s, the median of {ROUNDS} processes")
    sys.exit(0 if median <= MOST_SECONDS else 1)


if __name__ == "__main__":
    main()
