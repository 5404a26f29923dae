"""How long `import bertcli` takes, without Python's own start; the median of new processes.

python scripts/bench/import_time.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys

ROUNDS = 21
PROGRAM = "import time; t = time.perf_counter(); import bertcli; print(time.perf_counter() - t)"


def main() -> None:
    """Print the seconds."""
    command = [sys.executable, "-c", PROGRAM]
    seconds = [float(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(ROUNDS)]
    print(f"import bertcli: {statistics.median(seconds):.3f} s, the median of {ROUNDS} processes")


if __name__ == "__main__":
    main()
