"""From files to a first model and its page by three commands: `init`, `pretrain` or `finetune`, `report`.

    python scripts/check/first_models.py FILES [FILES ...] --out FOLDER [--minutes 5] [--model MODEL]

Each FILES is a corpus or a labeled file, a folder, or a glob in quotes, as `bertcli init` takes it; labeled
files start with MODEL. Prints for each the minutes that the training command took beside `--minutes`, what
the run said at its end, and the size of the page; at the end the median of the times. The machine must have
nothing else to do. Ends with exit code 1 where the median is more than 25 % away from `--minutes`.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

TOLERANCE = 0.25


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--model")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    taken = [
        first_model(files, options.out / str(number), options.minutes, model=options.model)
        for number, files in enumerate(options.files, start=1)
    ]
    median = statistics.median(taken)
    print(f"median of {len(taken)}: {median:.2f} minutes of {options.minutes:g}")
    sys.exit(0 if abs(median / options.minutes - 1) <= TOLERANCE else 1)


def first_model(files: str, folder: Path, minutes: float, model: str | None) -> float:
    """The minutes of the training command."""
    folder.mkdir()
    given = ["--minutes", str(minutes), *([] if model is None else ["--model", str(Path(model).resolve())])]
    _, said = bertcli(folder, "init", str(Path(files).resolve()), *given)
    command = said.rsplit("next: bertcli ", 1)[1].split()
    start = time.monotonic()
    _, said = bertcli(folder, *command)
    taken = (time.monotonic() - start) / 60
    (run,) = (folder / "runs").iterdir()
    page = Path(bertcli(folder, "report", str(run))[0].strip())
    verdict = next(line for line in reversed(said.splitlines()) if line.startswith(("verdict", "warning")))
    size = (folder / page).stat().st_size
    print(f"{files}: {command[0]} took {taken:.2f} minutes; the page has {size / 1e3:,.0f} kB", flush=True)
    print(f"  {verdict}", flush=True)
    return taken


def bertcli(folder: Path, *arguments: str) -> tuple[str, str]:
    """Standard output and standard error of a command in `folder`."""
    line = [sys.executable, "-m", "bertcli", *arguments]
    done = subprocess.run(line, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bertcli {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout, done.stderr


if __name__ == "__main__":
    main()
